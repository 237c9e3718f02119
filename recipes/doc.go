// Package recipes is the folder of what stands in line as elections do, each with its own promise:
//
//   - [github.com/succession-dev/succession/recipes/lock]: locks, shared locks, semaphores, several
//     locks together;
//   - [github.com/succession-dev/succession/recipes/queue]: items that survive those who put and take them;
//   - [github.com/succession-dev/succession/recipes/barrier]: n processes go on together, and leave together;
//   - [github.com/succession-dev/succession/recipes/group]: who is there, and items divided over those present;
//   - [github.com/succession-dev/succession/recipes/record]: small values with versions, followed
//     as they change;
//   - [github.com/succession-dev/succession/recipes/task]: master and workers, hot and cold standby.
//
// docs/recipes.md says what each of them promises, and what it costs. The package itself has
// [Hold], which what they give has in common.
package recipes
