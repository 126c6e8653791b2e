package cpucycles

// Cycles from one 32-bit multiplication to the next that needs its result, on
// every x86-64 core of the last fifteen years but AMD's Bulldozer family, where
// it is 4 (Agner Fog, "Instruction tables", IMUL r,r).
const multiplyLatency = 3
