// Real numbers of single precision in variables of double precision, and whole ones. units.sv has the functions of a
// circuit that is built.
`define FLOAT32 real
`define SINGLE(bits, value) value
package arithmetic;
    // The nearest number of single precision, of two the even one. Of two of them, +, -, * and / in double precision and
    // this give what a unit of single precision does.
    function automatic real single(input real x);
        reg [63:0] b;
        real       step;
        begin
            b = $realtobits(x);
            if (b[62:52] < 897) begin  // subnormal: a multiple of 2^-149
                step = b[63] ? -1.5 * 2.0 ** -97 : 1.5 * 2.0 ** -97;
                single = $bitstoreal({b[63], 63'($realtobits((x + step) - step))});  // -0 stays
            end else if (b[62:52] == 2047)
                single = x;
            else begin
                b = (b + 64'hfffffff + b[29]) & ~64'h1fffffff;
                single = $bitstoreal(b[62:52] > 1150 ? {b[63], 11'h7ff, 52'h0} : b);
            end
        end
    endfunction

    function automatic real plus(input real a, input real b);
        plus = single(a + b);
    endfunction

    function automatic real minus(input real a, input real b);
        minus = single(a - b);
    endfunction

    function automatic real times(input real a, input real b);
        times = single(a * b);
    endfunction

    function automatic real over(input real a, input real b);
        over = single(a / b);
    endfunction

    function automatic real negated(input real x);
        negated = -x;
    endfunction

    function automatic less(input real a, input real b);
        less = a < b;
    endfunction

    function automatic equal(input real a, input real b);
        equal = a == b;
    endfunction

    function automatic real from_integer(input signed [32:0] x);
        from_integer = single(x);
    endfunction

    function automatic [31:0] to_single(input real x);
        reg [63:0] b;
        begin
            b = $realtobits(x);
            if (b[62:52] == 2047)
                to_single = {b[63], 8'hff, b[51:29]};
            else if (b[62:52] < 897)
                to_single = {b[63], 31'({1'b1, b[51:29]} >> (897 - b[62:52]))};
            else
                to_single = {b[63], 8'(b[62:52] - 896), b[51:29]};
        end
    endfunction

    function automatic real from_single(input [31:0] b);
        begin
            if (b[30:23] == 255)
                from_single = $bitstoreal({b[31], 11'h7ff, b[22:0], 29'h0});
            else if (b[30:23] == 0)
                from_single = (b[31] ? -1.0 : 1.0) * b[22:0] * 2.0 ** -149;
            else
                from_single = $bitstoreal({b[31], 11'd896 + b[30:23], b[22:0], 29'h0});
        end
    endfunction

    // The nearest whole number, of two the even one.
    function automatic real nearest(input real x);
        real magic;
        begin
            magic = x < 0.0 ? -(2.0 ** 52) : 2.0 ** 52;
            nearest = x > -(2.0 ** 52) && x < 2.0 ** 52 ? (x + magic) - magic : x;
        end
    endfunction

    // Without its fraction.
    function automatic signed [64:0] whole(input real x);
        whole = x < 0.0 ? $ceil(x) : $floor(x);
    endfunction
endpackage
