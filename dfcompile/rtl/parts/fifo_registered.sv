// A FIFO whose two ends see registers alone: an element can be read in the cycle after it was written, and its place be
// taken in the cycle after it was read. It counts its elements; it does not hold their values.
module fifo_registered #(
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

    assign space = held != CAPACITY;
    assign available = held != 0;

    reg is_written, is_read;  // in this cycle

    always_ff @(posedge clk) begin
        is_written <= push & space;
        is_read <= pull & available;
    end

    always_ff @(negedge clk)
        if (reset) held <= 0;
        else held <= held + is_written - is_read;
endmodule
