//go:build race

package recipes_test

const schedules = 15
