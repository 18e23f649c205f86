"""Side by side with the peers, in one run. It lives in the package so that `saccade bench` works from a wheel."""
