// From the request to the return, with a client made from the server's own description. Prints what it saw as JSON.
import createClient from "openapi-fetch";
import type { components, paths } from "./api.js";

const [server, token] = [process.env.SERVER!, process.env.TOKEN!];
const client = createClient<paths>({
  baseUrl: server,
  headers: { Authorization: `Bearer ${token}`, Accept: "application/json" },
});

// Ends the program where an answer is not the one that is expected.
function expect<T>(what: string, answer: { data?: T; error?: unknown; response: Response }, status: number): T {
  if (answer.response.status !== status) {
    throw new Error(`${what}: ${answer.response.status} ${JSON.stringify(answer.error)}`);
  }
  return answer.data as T;
}

const once = { params: { header: { "Idempotency-Key": "round-trip" } }, body: { labels: ["small"], lease: 60 } };
const made = expect("make", await client.POST("/api/v1/requests", once), 201);
const again = expect("repeat", await client.POST("/api/v1/requests", once), 200);
const counts = expect("make by counts", await client.POST("/api/v1/requests", { body: { labels: { small: 2 } } }), 201);
const of = (id: string) => ({ params: { path: { id } } });

let held = made;
while (held.state === "waiting") {
  const wait = { params: { path: { id: made.id }, query: { wait: 30 } } };
  held = expect("wait", await client.GET("/api/v1/requests/{id}", wait), 200);
}
const [node] = held.nodes;
const address: string | null = node.interface_ip;
const keys: string[] = node.host_keys;
const renewed = expect("renew", await client.POST("/api/v1/requests/{id}/renew", of(made.id)), 200);
const listed = expect("list", await client.GET("/api/v1/leases"), 200);
const nodes = expect("nodes", await client.GET("/api/v1/nodes", { params: { query: { state: ["in-use"] } } }), 200);
const wrong = { params: { path: { id: made.id } }, body: { node: "none" } };
const refused = await client.POST("/api/v1/requests/{id}/hold", wrong);
const reason = (refused.error as components["schemas"]["Error"]).message;
expect("end", await client.DELETE("/api/v1/requests/{id}", of(made.id)), 204);
expect("end", await client.DELETE("/api/v1/requests/{id}", of(counts.id)), 204);

console.log(JSON.stringify({
  is_same: made.id === again.id, state: held.state, address, keys: keys.length, renewed: renewed.renewed! >= made.renewed!,
  listed: listed.leases.map((lease) => lease.id).includes(made.id), in_use: nodes.nodes.map((entry) => entry.id).includes(node.id),
  refused: refused.response.status, reason, counts: counts.labels,
}));
