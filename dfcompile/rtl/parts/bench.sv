// Runs all circuits and prints the cycles that each took; for Verilator and Icarus.
`timescale 1ns / 1ns
module bench;
    parameter REGISTERED = 0;
    parameter EXTRA = 0;
    integer place;
    reg clk = 0, reset = 1, go = 0;
    wire [LAST:0] is_over, is_stuck;
    wire [LAST_BIT:0] cycles;

    circuits #(.REGISTERED(REGISTERED), .EXTRA(EXTRA)) all (
        .clk(clk), .reset(reset), .go(go), .is_over(is_over), .is_stuck(is_stuck),
        .cycles(cycles)
    );

    string waves;
    initial begin
        if ($value$plusargs("waves=%s", waves)) begin
            $dumpfile(waves);
            $dumpvars(0, all);
        end
        #1 clk = 1;
        #1 clk = 0;
        #1 reset = 0;
        while (!(&is_over)) begin
            #1 go = 1;
            #1 clk = 1;
            #1 go = 0;
            #1 clk = 0;
        end
        // SHOWN
        $finish;
    end
endmodule
