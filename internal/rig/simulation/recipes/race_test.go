//go:build race

package recipes_test

const schedules = 6
