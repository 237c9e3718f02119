package controllerruntime

var SessionTime = sessionTime
