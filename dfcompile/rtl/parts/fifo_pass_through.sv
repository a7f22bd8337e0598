// A FIFO that passes through: an element can be read in the cycle in which it is written, and a full FIFO is refilled
// in the cycle in which it is read. It counts its elements; it does not hold their values.
module fifo_pass_through #(
    parameter CAPACITY = 1
) (
    input  wire clk,
    input  wire reset,
    input  wire push,
    output wire space,
    input  wire pull,
    output wire available
);
    reg [$clog2(CAPACITY + 1)-1:0] held;

    assign space = (held != CAPACITY) | pull;
    assign available = (held != 0) | push;

    reg is_written, is_read;  // in this cycle

    always_ff @(posedge clk) begin
        is_written <= push & space;
        is_read <= pull & available;
    end

    always_ff @(negedge clk)
        if (reset) held <= 0;
        else held <= held + is_written - is_read;
endmodule
