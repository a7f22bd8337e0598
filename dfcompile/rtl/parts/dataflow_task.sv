// A canonical task: it reads READS times, one element of each of its INPUTS, and writes WRITES times, one element to
// each of its OUTPUTS. Write j takes place when ceil(j * READS / WRITES) reads have.
//
// In a cycle it writes if a write is due, one output after the other; then, unless more writes are due, it reads, one
// input after the other. An access that is not possible holds up those behind it; those before it are not repeated.
//
// The handshakes of a cycle rise from 0 while go is up and no register that they depend on changes; clk rises, and
// takes what they have come to; go falls, and they with it; clk falls, and the registers change. So tasks that wait for
// each other in a circle rest, though signals lead around it.
module dataflow_task #(
    parameter READS = 1,
    parameter WRITES = 1,
    parameter INPUTS = 1,
    parameter OUTPUTS = 1
) (
    input  wire               clk,
    input  wire               reset,
    input  wire               go,         // the cycle is being evaluated
    input  wire               may_run,    // all that the task waits for has ended
    output wire [INPUTS-1:0]  pull,       // wants the next element
    input  wire [INPUTS-1:0]  available,  // which is there
    output wire [OUTPUTS-1:0] push,       // has the next element
    input  wire [OUTPUTS-1:0] space,      // for which there is a place
    output wire               moves,      // an element moves
    output wire               ended       // the last write takes place, or has
);
    reg [$clog2(READS+1)-1:0]        unread;  // reads to come
    reg [$clog2(READS+WRITES+1)-1:0] credit;  // reads so far * WRITES - writes so far * READS
    reg [INPUTS-1:0]  got, now_got;           // inputs of the next read; with those of this cycle
    reg [OUTPUTS-1:0] sent, now_sent;         // outputs of the next write
    reg               has_read, has_written;  // all of them in this cycle

    wire is_due = credit >= READS;
    wire is_only_one = credit - READS < READS;
    wire [OUTPUTS:0] writing;  // whether all outputs before each are done
    wire [INPUTS:0]  reading;  // whether all inputs before each are done

    assign writing[0] = go & is_due;
    assign reading[0] = go & may_run & (unread != 0) & (~is_due | (is_only_one & writing[OUTPUTS]));
    for (genvar k = 0; k < OUTPUTS; k = k + 1) begin : writes
        assign push[k] = writing[k] & ~sent[k];
        assign writing[k + 1] = writing[k] & (sent[k] | space[k]);
    end
    for (genvar k = 0; k < INPUTS; k = k + 1) begin : reads
        assign pull[k] = reading[k] & ~got[k];
        assign reading[k + 1] = reading[k] & (got[k] | available[k]);
    end
    assign moves = |(push & space) | |(pull & available);
    assign ended = (unread == 0) & (credit == 0 | (credit == READS & writing[OUTPUTS]));

    always_ff @(posedge clk) begin
        has_read <= reading[INPUTS];
        has_written <= writing[OUTPUTS];
        now_got <= got | (pull & available);
        now_sent <= sent | (push & space);
    end

    always_ff @(negedge clk)
        if (reset) begin
            unread <= READS;
            credit <= 0;
            got <= 0;
            sent <= 0;
        end else begin
            unread <= unread - has_read;
            credit <= credit + (has_read ? WRITES : 0) - (has_written ? READS : 0);
            got <= has_read ? 0 : now_got;
            sent <= has_written ? 0 : now_sent;
        end
endmodule
