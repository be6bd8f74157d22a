"""An extension of qjump-mn: links that lose frames, and what shows them."""
