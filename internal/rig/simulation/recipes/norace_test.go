//go:build !race

package recipes_test

// schedules is how many there are of each recipe, where nobody asks for another number.
const schedules = 40
