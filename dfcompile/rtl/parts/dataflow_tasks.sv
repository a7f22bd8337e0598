// COUNT canonical tasks of one shape. Each reads READS times, one element of each of its INPUTS, and writes WRITES times,
// one element to each of its OUTPUTS. Write j takes place when ceil(j * READS / WRITES) reads have.
//
// A task goes from step to step. In a step it writes if a write is due, one output after the other; then, unless more
// writes are due, it reads, one input after the other. An access that is not possible holds up those behind it; those
// before it are not repeated. A step takes a cycle. With more streams than PORTS it has phases, a cycle each: no more
// than PORTS outputs are written in one, nor inputs read; reads begin in the phase of the last writes.
//
// The handshakes of a cycle rise from 0 while go is up and no register that they depend on changes; clk rises, and
// takes what they have come to; go falls, and they with it; clk falls, and the registers change. So tasks that wait for
// each other in a circle rest, though signals lead around it.
//
// Signals of streams come stream by stream: bit k * COUNT + t is of stream k of task t.
module dataflow_tasks #(
    parameter COUNT = 1,
    parameter READS = 1,
    parameter WRITES = 1,
    parameter INPUTS = 1,
    parameter OUTPUTS = 1,
    parameter PORTS = 1 << 30,  // streams that are read, and that are written, in a cycle
    parameter DEPTH = 0         // cycles of the pipeline, in which a task drains before it has ended
) (
    input  wire                     clk,
    input  wire                     reset,
    input  wire                     go,         // the cycle is being evaluated
    input  wire [COUNT-1:0]         may_run,    // all that the task waits for has ended
    output reg  [COUNT*INPUTS-1:0]  pull,       // wants the next element
    input  wire [COUNT*INPUTS-1:0]  available,  // which is there
    output reg  [COUNT*OUTPUTS-1:0] push,       // has the next element
    input  wire [COUNT*OUTPUTS-1:0] space,      // for which there is a place
    output wire                     moves,      // something moves
    output wire [COUNT-1:0]         ended       // the last write takes place, or has
);
    /* verilator no_inline_module */
    localparam LAST_WRITES = (OUTPUTS - 1) / PORTS;  // phases: of the last writes, and of the first reads
    localparam PHASES = LAST_WRITES + (INPUTS - 1) / PORTS + 1;

    (* mem2reg *) reg [$clog2(READS+1)-1:0]        unread[0:COUNT-1];  // reads to come
    (* mem2reg *) reg [$clog2(READS+WRITES+1)-1:0] credit[0:COUNT-1];  // reads so far * WRITES - writes so far * READS
    reg [COUNT-1:0]         has_unread, is_due, is_one;  // reads are to come; a write is due; no more than one
    reg [COUNT*PHASES-1:0]  phase;                       // a bit of each task is up
    reg [COUNT*INPUTS-1:0]  got;                         // inputs of the next read
    reg [COUNT*OUTPUTS-1:0] sent;                        // outputs of the next write

    reg [COUNT-1:0] passes, writes, reads, accesses;  // the cycle, for a task; with it a row of writes, of reads
    reg [COUNT-1:0] finishes;
    integer k;
    always @* begin
        passes = {COUNT{go}} & may_run;
        for (k = 0; k < OUTPUTS; k = k + 1) begin
            accesses = is_due & phase[(k / PORTS) * COUNT +: COUNT];
            push[k * COUNT +: COUNT] = passes & accesses & ~sent[k * COUNT +: COUNT];
            passes = passes & (~accesses | sent[k * COUNT +: COUNT] | space[k * COUNT +: COUNT]);
        end
        writes = passes & is_due & phase[LAST_WRITES * COUNT +: COUNT];
        finishes = ~has_unread & (~is_due | (is_one & writes));
        reads = has_unread & (~is_due | (is_one & writes));
        for (k = 0; k < INPUTS; k = k + 1) begin
            accesses = reads & phase[(LAST_WRITES + k / PORTS) * COUNT +: COUNT];
            pull[k * COUNT +: COUNT] = passes & accesses & ~got[k * COUNT +: COUNT];
            passes = passes & (~accesses | got[k * COUNT +: COUNT] | available[k * COUNT +: COUNT]);
        end
        reads = passes & reads & phase[(PHASES - 1) * COUNT +: COUNT];
    end

    reg [COUNT-1:0]         has_passed, has_read, has_written, has_finished;  // in this cycle
    reg [COUNT*INPUTS-1:0]  now_got;
    reg [COUNT*OUTPUTS-1:0] now_sent;
    always @(posedge clk) begin
        has_passed <= passes;
        has_read <= reads;
        has_written <= writes;
        has_finished <= finishes;
        now_got <= got | (pull & available);
        now_sent <= sent | (push & space);
    end

    integer t;
    always @(negedge clk)
        if (reset) begin
            has_unread <= {COUNT{1'b1}};
            is_due <= 0;
            is_one <= 0;
            phase <= {COUNT{1'b1}} << (LAST_WRITES * COUNT);
            got <= 0;
            sent <= 0;
            for (t = 0; t < COUNT; t = t + 1) begin
                unread[t] = READS;
                credit[t] = 0;
            end
        end else begin
            got <= now_got & ~{INPUTS{has_read}};
            sent <= now_sent & ~{OUTPUTS{has_written}};
            if (PHASES > 1)
                phase <= (phase & ~{PHASES{has_passed}})
                    | ((phase << COUNT | phase >> ((PHASES - 1) * COUNT)) & {PHASES{has_passed}});
            if (|(has_read | has_written))
                for (t = 0; t < COUNT; t = t + 1)
                    if (has_read[t] | has_written[t]) begin
                        credit[t] = credit[t] + (has_read[t] ? WRITES : 0) - (has_written[t] ? READS : 0);
                        unread[t] = unread[t] - has_read[t];
                        is_due[t] <= credit[t] >= READS;
                        is_one[t] <= credit[t] - READS < READS;
                        has_unread[t] <= unread[t] != 0;
                    end
        end

    if (DEPTH > 0) begin : pipeline
        reg [COUNT*DEPTH-1:0] drained;
        always @(negedge clk) drained <= reset ? 0 : {drained, has_finished};
        assign ended = drained[(DEPTH - 1) * COUNT +: COUNT];
    end else begin : pipeline
        assign ended = finishes;
    end
    assign moves = |(push & space) | |(pull & available) | |(passes & (has_unread | is_due)) | |(finishes & ~ended);
endmodule
