// What COUNT FIFOs of PLACES places hold, WIDTH bits an element. What is read in the cycle in which it is written, into an
// empty FIFO, passes through.
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
    reg [WIDTH-1:0] elements[0:COUNT*PLACES-1];
    integer first[0:COUNT-1], behind[0:COUNT-1];  // places of the first element, and behind the last one
    reg [COUNT-1:0] is_empty, entered, left;

    genvar i;
    for (i = 0; i < COUNT; i = i + 1) begin : each_fifo
        assign next[i * WIDTH +: WIDTH] = is_empty[i] ? written[i * WIDTH +: WIDTH] : elements[i * PLACES + first[i]];
    end

    reg [COUNT*WIDTH-1:0] arriving;
    always @(posedge clk) begin
        entered <= enters;
        left <= leaves;
        arriving <= written;
    end

    integer t;
    always @(negedge clk)
        if (reset) begin
            is_empty <= {COUNT{1'b1}};
            for (t = 0; t < COUNT; t = t + 1) begin
                first[t] = 0;
                behind[t] = 0;
            end
        end else if (|(entered | left))
            for (t = 0; t < COUNT; t = t + 1) begin
                if (entered[t]) begin
                    elements[t * PLACES + behind[t]] = arriving[t * WIDTH +: WIDTH];
                    behind[t] = behind[t] == PLACES - 1 ? 0 : behind[t] + 1;
                end
                if (left[t])
                    first[t] = first[t] == PLACES - 1 ? 0 : first[t] + 1;
                if (entered[t] ^ left[t])
                    is_empty[t] <= left[t] && first[t] == behind[t];
            end
endmodule
