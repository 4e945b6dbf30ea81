// Build: which chunk, does it hold? It comes with builds themselves.
export default function Build() {
  return (
    <>
      <header class="head">
        <div>
          <h1>No build has begun</h1>
          <p class="sub">A build goes through its chunks one by one, and says of each whether it holds.</p>
        </div>
      </header>
      <div class="empty">
        <h3>Builds are not there yet</h3>
        <p>
          Its chunks, the checks of each, what was found and what came in by the way will stand here. Until then, a
          quest does the work in steps.
        </p>
        <div class="actions">
          <a class="btn line" href="/quests">
            See the quests
          </a>
        </div>
      </div>
    </>
  );
}
