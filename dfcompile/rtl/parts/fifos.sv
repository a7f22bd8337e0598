// COUNT FIFOs. An element can be read FORWARD cycles after it enters, and its place be taken BACKWARD cycles after it is
// read; 0: in the same cycle, and 1: both ends see registers alone. A place is taken by the write, before the element
// enters if the writer has a pipeline. A FIFO counts its elements; it does not hold their values.
module fifos #(
    parameter COUNT = 1,
    parameter CAPACITY = 1,
    parameter FORWARD = 0,
    parameter BACKWARD = 0
) (
    input  wire             clk,
    input  wire             reset,
    input  wire [COUNT-1:0] push,
    output wire [COUNT-1:0] space,
    input  wire [COUNT-1:0] enter,
    input  wire [COUNT-1:0] pull,
    output wire [COUNT-1:0] available,
    output wire             moves       // elements or places are on their way
);
    /* verilator no_inline_module */
    (* mem2reg *) reg [$clog2(CAPACITY+1)-1:0] free[0:COUNT-1];  // places that the writer knows of
    (* mem2reg *) reg [$clog2(CAPACITY+1)-1:0] held[0:COUNT-1];  // elements that the reader knows of
    reg [COUNT-1:0] is_full, is_empty;                           // no such place; no such element

    assign space = BACKWARD ? ~is_full : ~is_full | (pull & available);
    assign available = FORWARD ? ~is_empty : ~is_empty | enter;

    reg [COUNT-1:0] is_taken, is_written, is_read;  // in this cycle
    always @(posedge clk) begin
        is_taken <= push & space;
        is_written <= enter;
        is_read <= pull & available;
    end

    // what is written and read in this cycle and those before, COUNT bits for each
    reg  [COUNT*(FORWARD+1)-1:0]  elements;
    reg  [COUNT*(BACKWARD+1)-1:0] places;
    wire [COUNT-1:0] coming, returning;
    if (FORWARD > 1) begin : forward
        assign coming = elements[(FORWARD - 2) * COUNT +: COUNT];
    end else begin : forward
        assign coming = is_written;
    end
    if (BACKWARD > 1) begin : backward
        assign returning = places[(BACKWARD - 2) * COUNT +: COUNT];
    end else begin : backward
        assign returning = is_read;
    end
    assign moves = (FORWARD > 1 && |(elements << 2 * COUNT)) || (BACKWARD > 1 && |(places << 2 * COUNT));

    integer t;
    always @(negedge clk)
        if (reset) begin
            elements <= 0;
            places <= 0;
            is_full <= 0;
            is_empty <= {COUNT{1'b1}};
            for (t = 0; t < COUNT; t = t + 1) begin
                free[t] = CAPACITY;
                held[t] = 0;
            end
        end else begin
            elements <= {elements, is_written};
            places <= {places, is_read};
            if (|(is_taken | returning))
                for (t = 0; t < COUNT; t = t + 1)
                    if (is_taken[t] ^ returning[t]) begin
                        free[t] = returning[t] ? free[t] + 1 : free[t] - 1;
                        is_full[t] <= free[t] == 0;
                    end
            if (|(is_read | coming))
                for (t = 0; t < COUNT; t = t + 1)
                    if (is_read[t] ^ coming[t]) begin
                        held[t] = coming[t] ? held[t] + 1 : held[t] - 1;
                        is_empty[t] <= held[t] == 0;
                    end
        end
endmodule
