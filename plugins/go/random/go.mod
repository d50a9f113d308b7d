// What the engines and the Helm deployer draw at random.
module orangery.dev/random

go 1.26
