// A FIFO of the kind that the circuit is made with.
module fifo #(
    parameter REGISTERED = 0,
    parameter CAPACITY = 1
) (
    input  wire clk,
    input  wire reset,
    input  wire push,
    output wire space,
    input  wire pull,
    output wire available
);
    if (REGISTERED != 0) begin : kind
        fifo_registered #(.CAPACITY(CAPACITY)) one (
            .clk(clk), .reset(reset), .push(push), .space(space), .pull(pull), .available(available)
        );
    end else begin : kind
        fifo_pass_through #(.CAPACITY(CAPACITY)) one (
            .clk(clk), .reset(reset), .push(push), .space(space), .pull(pull), .available(available)
        );
    end
endmodule
