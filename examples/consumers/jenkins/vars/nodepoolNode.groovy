import com.cloudbees.groovy.cps.NonCPS
import groovy.json.JsonOutput
import groovy.json.JsonSlurperClassic

/**
 * A step for Jenkins pipelines: runs its body with nodes of Nodepool, which are given back afterwards, however it ended.
 *
 *     nodepoolNode(server: 'https://nodepool.example.org', credentialsId: 'nodepool', labels: ['debian-12']) { nodes ->
 *         echo "The node is ${nodes[0].interface_ip}"
 *     }
 *
 * server: address; credentialsId: of a secret text, the token; labels: one for each node; lease: seconds that
 * the nodes stay ours when Jenkins is away (300); wait: minutes to wait for the nodes (60).
 */
def call(Map settings, Closure body) {
    int lease = settings.lease ?: 300
    withCredentials([string(credentialsId: settings.credentialsId, variable: 'NODEPOOL_TOKEN')]) {
        Map server = [url: settings.server.replaceAll('/+$', ''), token: env.NODEPOOL_TOKEN]
        // With the same key the server makes one request, however often it is sent.
        String key = UUID.randomUUID().toString()
        String id = null
        try {
            id = insist(server, 'POST', '', [labels: settings.labels, lease: lease], key, 60).value.id
            List nodes = await(server, id, settings.wait ?: 60, lease)
            useWhileRenewed(server, id, lease, nodes, body)
        } finally {
            giveBack(server, id)
        }
    }
}

List await(Map server, String id, int minutes, int lease) {
    long begin = uptime()
    String shown = ''
    while (uptime() - begin < minutes * 60) {
        if (uptime() < begin) { begin = uptime() } // the computer was restarted
        // Short polls, because a pipeline must not block; each renews the request.
        Map request = insist(server, 'GET', "/${id}?wait=2", null, null, lease).value
        if (request.state == 'held') { return request.nodes }
        if (request.state != 'waiting') { error("Nodepool has no nodes: ${request.failure ?: request.state}") }
        String waits = request.reason?.text
        if (waits && waits != shown) { echo("Waiting for nodes: ${waits}") }
        shown = waits
        sleep(time: 3, unit: 'SECONDS')
    }
    error("There were no nodes within ${minutes} minutes")
}

void useWhileRenewed(Map server, String id, int lease, List nodes, Closure body) {
    Map work = [isDone: false]
    parallel(failFast: true,
        'lease': {
            long renewed = uptime()
            while (!work.isDone) {
                sleep(time: 2, unit: 'SECONDS')
                long now = uptime()
                long passed = now < renewed ? lease : now - renewed // the computer was restarted
                if (!work.isDone && passed > lease / 3) {
                    insist(server, 'POST', "/${id}/renew", null, null, (int) (lease - passed))
                    renewed = now
                }
            }
        },
        'work': {
            try {
                body(nodes)
            } finally {
                work.isDone = true
            }
        })
}

void giveBack(Map server, String id) {
    if (id == null) { return }
    try {
        insist(server, 'DELETE', "/${id}", null, null, 30)
    } catch (IOException problem) {
        echo("The nodes are given back when their lease ends: ${problem.message}")
    }
}

// Sends a request, again and again for so many seconds while the server is away.
Map insist(Map server, String method, String path, Map body, String key, int seconds) {
    long begin = uptime()
    while (true) {
        Map answer = ask(server, method, path, body == null ? null : JsonOutput.toJson(body), key)
        boolean isDone = answer.status in 200..299 || (method == 'DELETE' && answer.status == 404)
        if (isDone) { return answer }
        boolean isPassing = answer.status == 0 || answer.status == 429 || answer.status >= 500
        if (!isPassing || Math.abs(uptime() - begin) > seconds) {
            throw new IOException("Nodepool answers ${answer.status}: ${answer.text}")
        }
        sleep(time: 2, unit: 'SECONDS')
    }
}

// Seconds by a clock that nobody sets. It begins anew when the computer starts, which a pipeline survives.
@NonCPS
static long uptime() {
    return System.nanoTime().intdiv(1_000_000_000L)
}

// Status 0: there was no answer. Redirections are not followed: the token is for this server alone.
@NonCPS
static Map ask(Map server, String method, String path, String body, String key) {
    HttpURLConnection connection = (HttpURLConnection) new URL("${server.url}/api/v1/requests${path}").openConnection()
    connection.requestMethod = method
    connection.instanceFollowRedirects = false
    connection.connectTimeout = 10_000
    connection.readTimeout = 30_000
    connection.setRequestProperty('Authorization', "Bearer ${server.token}")
    connection.setRequestProperty('Accept', 'application/json')
    if (key != null) { connection.setRequestProperty('Idempotency-Key', key) }
    try {
        if (body != null) {
            connection.setRequestProperty('Content-Type', 'application/json')
            connection.doOutput = true
            connection.outputStream.withStream { it.write(body.getBytes('UTF-8')) }
        }
        int status = connection.responseCode
        String text = (status < 400 ? connection.inputStream : connection.errorStream)?.getText('UTF-8') ?: ''
        Map value = text.startsWith('{') ? (Map) new JsonSlurperClassic().parseText(text) : [:]
        return [status: status, value: value, text: value.message ?: connection.responseMessage]
    } catch (IOException problem) {
        return [status: 0, value: [:], text: problem.message]
    }
}
