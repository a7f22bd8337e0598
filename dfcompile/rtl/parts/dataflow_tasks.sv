// COUNT canonical tasks of one shape. Each reads READS times, one element of each of its INPUTS, and writes WRITES times,
// one element to each of its OUTPUTS. Write j takes place when ceil(j * READS / WRITES) reads have.
//
// In a cycle a task writes if a write is due, one output after the other; then, unless more writes are due, it reads, one
// input after the other. An access that is not possible holds up those behind it; those before it are not repeated.
//
// The handshakes of a cycle rise from 0 while go is up and no register that they depend on changes; clk rises, and
// takes what they have come to; go falls, and they with it; clk falls, and the registers change. So tasks that wait for
// each other in a circle rest, though signals lead around it.
//
// Of more than PORTS inputs so many are read in a cycle, and the next ones in a later cycle; likewise outputs.
//
// Results leave their task DEPTH cycles after the access that writes them. The access takes a place in the FIFO, so that
// the pipelines, one for each output, never stop.
//
// Signals of streams come stream by stream: bit k * COUNT + t is of stream k of task t.
module dataflow_tasks #(
    parameter COUNT = 1,
    parameter READS = 1,
    parameter WRITES = 1,
    parameter INPUTS = 1,
    parameter OUTPUTS = 1,
    parameter DEPTH = 0,
    parameter PORTS = 1
) (
    input  wire                     clk,
    input  wire                     reset,
    input  wire                     go,         // the cycle is being evaluated
    input  wire [COUNT-1:0]         may_run,    // all that the task waits for has ended
    output reg  [COUNT*INPUTS-1:0]  pull,       // wants the next element
    input  wire [COUNT*INPUTS-1:0]  available,  // which is there
    output reg  [COUNT*OUTPUTS-1:0] push,       // has the next element
    input  wire [COUNT*OUTPUTS-1:0] space,      // for which there is a place
    output wire [COUNT*OUTPUTS-1:0] leave,      // an element leaves its pipeline
    output reg  [COUNT-1:0]         reads,      // in this cycle a read is complete: valid from clk on
    output reg  [COUNT-1:0]         writes,     // likewise
    output wire                     moves,      // something moves
    output wire [COUNT-1:0]         ended       // the last element leaves, or has
);
    /* verilator no_inline_module */

    (* mem2reg *) reg [$clog2(READS+1)-1:0]        unread[0:COUNT-1];  // reads to come
    (* mem2reg *) reg [$clog2(READS+WRITES+1)-1:0] credit[0:COUNT-1];  // reads so far * WRITES - writes so far * READS
    reg [COUNT-1:0]         has_unread, is_due, is_one;  // reads are to come; a write is due; no more than one
    reg [COUNT*INPUTS-1:0]  got;                         // inputs of the next read
    reg [COUNT*OUTPUTS-1:0] sent;                        // outputs of the next write

    reg [COUNT-1:0] writing, reading;  // all outputs so far, all inputs so far; at the end all of them
    integer k;
    always @* begin
        writing = {COUNT{go}} & is_due;
        for (k = 0; k < OUTPUTS; k = k + 1) begin
            if (k > 0 && k % PORTS == 0)
                writing = writing & sent[(k - 1) * COUNT +: COUNT];
            push[k * COUNT +: COUNT] = writing & ~sent[k * COUNT +: COUNT];
            writing = writing & (sent[k * COUNT +: COUNT] | space[k * COUNT +: COUNT]);
        end
        reading = {COUNT{go}} & may_run & has_unread & (~is_due | (is_one & writing));
        for (k = 0; k < INPUTS; k = k + 1) begin
            if (k > 0 && k % PORTS == 0)
                reading = reading & got[(k - 1) * COUNT +: COUNT];
            pull[k * COUNT +: COUNT] = reading & ~got[k * COUNT +: COUNT];
            reading = reading & (got[k * COUNT +: COUNT] | available[k * COUNT +: COUNT]);
        end
    end
    wire [COUNT-1:0] is_done = ~has_unread & (~is_due | (is_one & writing));  // with its accesses
    wire             drains;
    assign moves = |(push & space) | |(pull & available) | drains;

    reg [COUNT*INPUTS-1:0]  now_got;
    reg [COUNT*OUTPUTS-1:0] now_sent;
    always @(posedge clk) begin
        reads <= reading;
        writes <= writing;
        now_got <= got | (pull & available);
        now_sent <= sent | (push & space);
    end

    if (DEPTH > 0) begin : pipeline
        reg [COUNT*OUTPUTS-1:0]       now_entered;
        reg [COUNT-1:0]               now_done;
        reg [COUNT*OUTPUTS*DEPTH-1:0] elements;  // what has entered in the cycles before, the last one first
        reg [COUNT*DEPTH-1:0]         ends;
        always @(posedge clk) begin
            now_entered <= push & space;
            now_done <= is_done;
        end
        always @(negedge clk) begin
            elements <= reset ? 0 : {elements, now_entered};
            ends <= reset ? 0 : {ends, now_done};
        end
        assign leave = elements[COUNT*OUTPUTS*(DEPTH-1) +: COUNT*OUTPUTS];
        assign ended = ends[COUNT*(DEPTH-1) +: COUNT];
        assign drains = |elements;  // the last access of a task is a write
    end else begin : pipeline
        assign leave = push & space;
        assign ended = is_done;
        assign drains = 0;
    end

    integer t;
    always @(negedge clk)
        if (reset) begin
            has_unread <= {COUNT{1'b1}};
            is_due <= 0;
            is_one <= 0;
            got <= 0;
            sent <= 0;
            for (t = 0; t < COUNT; t = t + 1) begin
                unread[t] = READS;
                credit[t] = 0;
            end
        end else begin
            got <= now_got & ~{INPUTS{reads}};
            sent <= now_sent & ~{OUTPUTS{writes}};
            if (|(reads | writes))
                for (t = 0; t < COUNT; t = t + 1)
                    if (reads[t] | writes[t]) begin
                        credit[t] = credit[t] + (reads[t] ? WRITES : 0) - (writes[t] ? READS : 0);
                        unread[t] = unread[t] - reads[t];
                        is_due[t] <= credit[t] >= READS;
                        is_one[t] <= credit[t] - READS < READS;
                        has_unread[t] <= unread[t] != 0;
                    end
        end
endmodule
