// Counts the cycles of a circuit until it ends, or until nothing moves; no circuit without faults takes MOST.
module watch #(
    parameter MOST = 64'd1
) (
    input  wire       clk,
    input  wire       reset,
    input  wire       moves,
    input  wire       ended,
    output reg        is_over,
    output reg        is_stuck,
    output reg [63:0] cycles
);
    initial is_over = 0;

    always_ff @(posedge clk)
        if (reset) begin
            is_over <= 0;
            is_stuck <= 0;
            cycles <= 0;
        end else if (!is_over) begin
            is_over <= ended | ~moves | (cycles == MOST);
            is_stuck <= ~ended & ~moves;
            cycles <= cycles + (~ended & moves);
        end
endmodule
