package kit

// RightsHint ends the error of a denied request. Such an error names only one missing right, and
// this command names all.
const RightsHint = `"succession rights" prints all that an election needs`
