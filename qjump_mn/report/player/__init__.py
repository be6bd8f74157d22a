"""Write ``player.html``: the frames that the guest recorded, moving through the network."""
