"""What ./run starts, shows and stops: a Nodepool with a simulated cloud, or with real machines of this computer."""
