"""Speed and accuracy, measured as ratios in one run. `make bench` runs them all."""
