
// ---- a recording in the page ----

async function unpacked(text) {
  const packed = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  return new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"))).arrayBuffer();
}

const recording = JSON.parse(byId("data").textContent);
recording.numbers = (place) => unpacked(document.querySelectorAll(".numbers")[place].textContent);
showRecording(recording).catch((error) => {
  byId("failure").hidden = false;
  byId("failure").textContent = `The frames cannot be drawn: ${error.message}. This browser may be too old; the numbers are in asbuilt/frames.json.`;
});
