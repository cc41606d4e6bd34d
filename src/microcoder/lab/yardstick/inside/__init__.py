"""What runs in the throw-away process of a judge: plain scripts, which import nothing of this package."""
