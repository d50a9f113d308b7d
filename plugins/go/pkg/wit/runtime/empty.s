// Lets runtime.go declare functions whose bodies lie elsewhere.
