package kit

// RightsHint is how the error of a denied request ends: one right after the other is found to be missing, and this names them all.
const RightsHint = `"succession rights" prints all that an election needs`
