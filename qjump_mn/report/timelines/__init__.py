"""The time line of each trial: ``timeline/<arm>-<seed>.html``, all that was recorded with its time, to zoom
into."""
