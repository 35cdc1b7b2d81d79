#!/bin/sh
# Sandbox double of DCGM's daemon: runs, and watches nothing.
exec sleep infinity
