"""Write a time line of each trial, ``timeline/<arm>-<seed>.html``, in which readers can zoom."""
