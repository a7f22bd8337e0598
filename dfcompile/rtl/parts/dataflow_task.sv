// A canonical task: it reads READS times, one element of each of its INPUTS, and writes WRITES times, one element to
// each of its OUTPUTS. Write j takes place when ceil(j * READS / WRITES) reads have.
//
// In a cycle it writes if a write is due, one output after the other; then, unless more writes are due, it reads, one
// input after the other. An access that is not possible holds up those behind it; those before it are not repeated.
module dataflow_task #(
    parameter READS = 1,
    parameter WRITES = 1,
    parameter INPUTS = 1,
    parameter OUTPUTS = 1
) (
    input  wire               clk,
    input  wire               reset,
    input  wire               go,         // the cycle is being evaluated; without, no handshake is up
    input  wire               may_run,    // all that the task waits for has ended
    output reg  [INPUTS-1:0]  pull,       // wants the next element
    input  wire [INPUTS-1:0]  available,  // which is there
    output reg  [OUTPUTS-1:0] push,       // has the next element
    input  wire [OUTPUTS-1:0] space,      // for which there is a place
    output wire               moves,      // an element moves
    output wire               ended       // the last write takes place, or has
);
    localparam COUNT = $clog2(READS + 1);
    localparam CREDIT = $clog2(READS + WRITES + 1);

    reg [COUNT-1:0]   unread;  // reads to come
    reg [CREDIT-1:0]  credit;  // reads so far * WRITES - writes so far * READS
    reg [INPUTS-1:0]  got;     // of the next read
    reg [OUTPUTS-1:0] sent;    // of the next write
    reg               reads, writes;

    wire is_due = credit >= READS;
    wire is_only_one = credit - READS < READS;
    integer in, out;

    always_comb begin
        writes = go & is_due;
        for (out = 0; out < OUTPUTS; out = out + 1) begin
            push[out] = writes & ~sent[out];
            writes = writes & (sent[out] | space[out]);
        end
    end

    always_comb begin
        reads = go & may_run & (unread != 0) & (~is_due | (is_only_one & writes));
        for (in = 0; in < INPUTS; in = in + 1) begin
            pull[in] = reads & ~got[in];
            reads = reads & (got[in] | available[in]);
        end
    end

    assign moves = |(push & space) | |(pull & available);
    assign ended = (unread == 0) & (credit == 0 | (credit == READS & writes));

    always_ff @(posedge clk)
        if (reset) begin
            unread <= READS;
            credit <= 0;
            got <= 0;
            sent <= 0;
        end else begin
            if (reads) unread <= unread - 1'b1;
            credit <= credit + (reads ? WRITES : 0) - (writes ? READS : 0);
            got <= reads ? 0 : got | (pull & available);
            sent <= writes ? 0 : sent | (push & space);
        end
endmodule
