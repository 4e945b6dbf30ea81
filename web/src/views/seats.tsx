// Seats: who is awake, and what can I press? They come with the seats themselves.
export default function Seats() {
  return (
    <>
      <header class="head">
        <div>
          <h1>Nine seats, nobody in them</h1>
          <p class="sub">A sleeper keeps its soul and its last conversation, and wakes with both.</p>
        </div>
      </header>
      <div class="empty-seats">
        <div class="eggs" aria-hidden="true">
          {Array.from({ length: 9 }, (_, at) => (
            <svg key={at} viewBox="0 -8 96 116">
              <path d="M48 8C70 8 86 40 86 64a38 38 0 0 1-76 0C10 40 26 8 48 8z" />
            </svg>
          ))}
        </div>
        <div class="empty">
          <h3>Seats are not there yet</h3>
          <p>
            Agents with a name, a face and a memory of their own will sit here: each who is summoned chooses a name and
            keeps it. This program cannot summon anybody yet.
          </p>
          <div class="actions">
            <a class="btn line" href="/agents">
              See the agents
            </a>
          </div>
        </div>
      </div>
    </>
  );
}
