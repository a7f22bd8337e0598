// All circuits, each with a memory that never waits, and watched until it ends.
module circuits #(
    parameter REGISTERED = 0,
    parameter EXTRA = 0
) (
    input  wire clk,
    input  wire reset,
    input  wire go,
    output wire [LAST:0] is_over,
    output wire [LAST:0] is_stuck,
    output wire [LAST_BIT:0] cycles
);
