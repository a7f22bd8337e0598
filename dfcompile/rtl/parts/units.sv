// What takes the place of arithmetic.sv and words.sv where a circuit is built. Single precision as circuits: each function
// gives the bits that IEEE 754 asks for, subnormal numbers included, in one cycle.
`define FLOAT32 reg [31:0]
`define SINGLE(bits, value) bits
package arithmetic;
    // m * 2^e, rounded to the nearest, of two the even one; bit 0 of m may stand for all that is below it.
    function automatic [31:0] rounded(input is_negative, input signed [10:0] e, input [47:0] m);
        reg [47:0]        n;
        reg signed [10:0] biased;  // exponent, if the highest bit of n is 1
        reg [31:0]        rest;    // what is shifted out, and what is rounded away
        integer           k;
        begin
            n = m;
            biased = e + 11'sd174;
            for (k = 5; k >= 0; k = k - 1)
                if ((n >> (48 - (1 << k))) == 0) begin
                    n = n << (1 << k);
                    biased = biased - (11'sd1 << k);
                end
            rest = 0;
            if (biased < 1) begin  // subnormal
                if (biased < -25)
                    biased = -25;
                {n, rest} = {n, 32'b0} >> (11'sd1 - biased);
                biased = 0;
            end
            rest[0] = |rest | |n[22:0];
            rest[31] = n[23];
            if (biased > 254)
                rounded = 32'h7f800000;
            else  // a carry out of the fraction is one into the exponent
                rounded = {1'b0, 8'(biased), n[46:24]} + (rest[31] & (rest[0] | n[24]));
            if (m == 0)
                rounded = 0;
            rounded[31] = is_negative;
        end
    endfunction

    // The bits of a number as a whole one, to be multiplied by 2^(exponent - 150).
    function automatic [23:0] fraction(input [31:0] x);
        fraction = {x[30:23] != 0, x[22:0]};
    endfunction

    function automatic signed [10:0] exponent(input [31:0] x);
        exponent = x[30:23] == 0 ? 11'sd1 : x[30:23];
    endfunction

    function automatic is_nan(input [31:0] x);
        is_nan = x[30:0] > 31'h7f800000;
    endfunction

    function automatic [31:0] plus(input [31:0] a, input [31:0] b);
        reg [31:0] greater, lesser;
        reg [27:0] m, n;  // with three bits below those of a number
        reg [26:0] lost;
        integer    distance;
        begin
            {greater, lesser} = b[30:0] > a[30:0] ? {b, a} : {a, b};
            distance = exponent(greater) - exponent(lesser);
            m = {1'b0, fraction(greater), 3'b0};
            {n, lost} = {1'b0, fraction(lesser), 3'b0, 27'b0} >> (distance > 27 ? 27 : distance);
            n[0] = n[0] | (|lost);
            m = greater[31] == lesser[31] ? m + n : m - n;
            if (greater[30:23] == 255)
                plus = is_nan(greater) || (lesser[30:23] == 255 && greater[31] != lesser[31]) ? 32'h7fc00000 : greater;
            else
                plus = rounded(m == 0 ? greater[31] & lesser[31] : greater[31], exponent(greater) - 11'sd153, m);
        end
    endfunction

    function automatic [31:0] negated(input [31:0] x);
        negated = {~x[31], x[30:0]};
    endfunction

    function automatic [31:0] minus(input [31:0] a, input [31:0] b);
        minus = plus(a, negated(b));
    endfunction

    function automatic [31:0] times(input [31:0] a, input [31:0] b);
        reg [47:0] m;
        begin
            m = fraction(a) * fraction(b);
            if (a[30:23] == 255 || b[30:23] == 255)
                times = is_nan(a) || is_nan(b) || a[30:0] == 0 || b[30:0] == 0
                    ? 32'h7fc00000 : {a[31] ^ b[31], 31'h7f800000};
            else
                times = rounded(a[31] ^ b[31], exponent(a) + exponent(b) - 11'sd300, m);
        end
    endfunction

    function automatic [31:0] over(input [31:0] a, input [31:0] b);
        reg [23:0]        m, n;
        reg [24:0]        left;
        reg [26:0]        quotient;
        reg signed [10:0] e;
        integer           k;
        begin
            m = fraction(a);
            n = fraction(b);
            e = exponent(a) - exponent(b) - 11'sd26;
            for (k = 4; k >= 0; k = k - 1) begin  // subnormal ones as well begin with 1
                if ((m >> (24 - (1 << k))) == 0) begin
                    m = m << (1 << k);
                    e = e - (11'sd1 << k);
                end
                if ((n >> (24 - (1 << k))) == 0) begin
                    n = n << (1 << k);
                    e = e + (11'sd1 << k);
                end
            end
            left = m;
            for (k = 26; k >= 0; k = k - 1) begin
                quotient[k] = left >= n;
                left = (quotient[k] ? left - n : left) << 1;
            end
            quotient[0] = quotient[0] | left != 0;
            if (is_nan(a) || is_nan(b) || (a[30:0] == b[30:0] && (a[30:0] == 0 || a[30:23] == 255)))
                over = 32'h7fc00000;
            else if (a[30:23] == 255 || b[30:0] == 0)
                over = {a[31] ^ b[31], 31'h7f800000};
            else if (a[30:0] == 0 || b[30:23] == 255)
                over = {a[31] ^ b[31], 31'h0};
            else
                over = rounded(a[31] ^ b[31], e, quotient);
        end
    endfunction

    function automatic less(input [31:0] a, input [31:0] b);
        if (is_nan(a) || is_nan(b) || (a[30:0] | b[30:0]) == 0)
            less = 0;
        else if (a[31] != b[31])
            less = a[31];
        else
            less = a[31] ? a[30:0] > b[30:0] : a[30:0] < b[30:0];
    endfunction

    function automatic equal(input [31:0] a, input [31:0] b);
        equal = !is_nan(a) && !is_nan(b) && (a == b || (a[30:0] | b[30:0]) == 0);
    endfunction

    function automatic [31:0] from_integer(input signed [32:0] x);
        from_integer = rounded(x < 0, 11'sd0, x < 0 ? -x : x);
    endfunction

    // The nearest whole number, of two the even one.
    function automatic [31:0] nearest(input [31:0] x);
        reg [23:0] m;
        reg [24:0] rest;
        begin
            {m, rest} = {fraction(x), 25'b0} >> (x[30:23] < 125 ? 25 : 150 - x[30:23]);
            m = m + (rest[24] & (m[0] | (|rest[23:0])));
            nearest = x[30:23] >= 150 ? x : rounded(x[31], 11'sd0, m);
        end
    endfunction

    // Without its fraction; less than 2^31.
    function automatic signed [31:0] whole(input [31:0] x);
        reg [30:0] m;
        begin
            m = x[30:23] < 127 ? 0 : {fraction(x), 7'b0} >> (157 - x[30:23]);
            whole = x[31] ? -m : m;
        end
    endfunction

    function automatic [31:0] from_single(input [31:0] x);
        from_single = x;
    endfunction

    function automatic [31:0] to_single(input [31:0] x);
        to_single = x;
    endfunction
endpackage

// As in words.sv, with a memory for each FIFO.
module words #(
    parameter COUNT = 1,
    parameter WIDTH = 1,
    parameter PLACES = 1
) (
    input  wire                   clk,
    input  wire                   reset,
    input  wire [COUNT-1:0]       enters,
    input  wire [COUNT*WIDTH-1:0] written,
    input  wire [COUNT-1:0]       leaves,
    output wire [COUNT*WIDTH-1:0] next
);
    genvar i;
    for (i = 0; i < COUNT; i = i + 1) begin : each_fifo
        reg [WIDTH-1:0]          elements[0:PLACES-1];
        reg [$clog2(PLACES+1)-1:0] first, behind;
        reg                      is_empty;
        wire [$clog2(PLACES+1)-1:0] next_first = first == PLACES - 1 ? 0 : first + 1;
        wire [$clog2(PLACES+1)-1:0] next_behind = behind == PLACES - 1 ? 0 : behind + 1;

        assign next[i * WIDTH +: WIDTH] = is_empty ? written[i * WIDTH +: WIDTH] : elements[first];
        always @(negedge clk)
            if (enters[i])
                elements[behind] <= written[i * WIDTH +: WIDTH];
        always @(negedge clk)
            if (reset) begin
                is_empty <= 1;
                first <= 0;
                behind <= 0;
            end else begin
                if (enters[i])
                    behind <= next_behind;
                if (leaves[i])
                    first <= next_first;
                if (enters[i] ^ leaves[i])
                    is_empty <= leaves[i] && next_first == behind;
            end
    end
endmodule
