// Runs all circuits and prints the cycles that each took; for CXXRTL.
#include "circuits.cc"
#include <cinttypes>
#include <cstdio>

static const char *const names[] = {
// NAMES
};

template <class Value> static uint64_t bits(const Value &value, size_t first, size_t count) {
    uint64_t found = 0;
    for (size_t place = 0; place < count; place++)
        found |= uint64_t(value.data[(first + place) / 32] >> (first + place) % 32 & 1) << place;
    return found;
}

int main() {
    cxxrtl_design::p_circuits all;
    const size_t count = sizeof names / sizeof *names;
    auto step = [&](bool clk, bool reset, bool go) {
        all.p_clk.set(clk), all.p_reset.set(reset), all.p_go.set(go);
        all.step();
    };
    step(false, true, false), step(true, true, false), step(false, true, false), step(false, false, false);
    for (size_t over = 0; over < count;) {
        step(false, false, true), step(true, false, true), step(true, false, false), step(false, false, false);
        while (over < count && bits(all.p_is__over, over, 1)) over++;
    }
    for (size_t one = 0; one < count; one++)
        std::printf("%s: stuck %" PRIu64 ", cycles %" PRIu64 "\n", names[one], bits(all.p_is__stuck, one, 1),
                    bits(all.p_cycles, 64 * one, 64));
}
