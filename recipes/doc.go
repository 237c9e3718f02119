// Package recipes is the folder of the recipes that use the same line as elections, each with its
// own promise:
//
//   - [github.com/succession-dev/succession/recipes/lock]: locks, shared locks, semaphores, several
//     locks together;
//   - [github.com/succession-dev/succession/recipes/queue]: items that outlive the processes that
//     put and take them;
//   - [github.com/succession-dev/succession/recipes/barrier]: n processes go on together, and leave together;
//   - [github.com/succession-dev/succession/recipes/group]: which members are present, and items
//     divided among them;
//   - [github.com/succession-dev/succession/recipes/record]: small values with versions, followed
//     as they change;
//   - [github.com/succession-dev/succession/recipes/task]: master and workers, hot and cold standby.
//
// docs/recipes.md says what each of them promises, and what it costs. The package itself has
// [Hold], which is common to all that they give.
package recipes
