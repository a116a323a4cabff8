//! The files from which the guest builds the network and learns the traffic of a run.

use std::fmt::Write as _;
use std::path::Path;
use std::{fs, io};

use sojourn_apps::DatagramConfig;
use sojourn_backend::start_of;
use sojourn_net::{Bytes, Duration, Instant, Rate, Rng};
use sojourn_qdisc::{ModuleQueue, QueueChange};
use sojourn_records::Datagrams;
use sojourn_scenario::Plan;
use sojourn_scenario::plan::{Change, Config, FlowConfig, LinkConfig, Shaper, Traffic};
use sojourn_transport::{ReceiveBuffer, SenderParams, full_payload};

use crate::network::{Addresses, FIRST_PORT, Paths, Shaped, Toward, addresses, probability};

/// Packets that a wire and the delay box hold: more than any run has under way.
const WIRE_LIMIT: u32 = 1_000_000;
/// Socket buffers as large as any window takes (`net.ipv4.tcp_rmem`, `tcp_wmem`).
const READ_BUFFER: &str = "4096 131072 67108864";
const WRITE_BUFFER: &str = "4096 16384 67108864";
/// What a segment with timestamps has besides its payload, of the maximum segment size.
const TIMESTAMPS: u16 = 12;

/// The nodes of the network of a run, from the clients to the servers.
#[derive(Clone, Debug, PartialEq)]
struct Nodes(Vec<&'static str>);

impl Nodes {
    fn of(config: &Config, paths: &Paths) -> Self {
        let has_wire = |toward| {
            let link = paths.links.of(toward).map(|n: usize| &config.links[n]);
            link.is_some_and(Shaped::has_wire)
        };
        let mut nodes = vec!["c"];
        nodes.extend(has_wire(Toward::Clients).then_some("e"));
        nodes.push("r");
        nodes.extend(has_wire(Toward::Servers).then_some("w"));
        nodes.extend(["d", "s"]);
        Self(nodes)
    }

    /// Each node with the next one, numbered.
    fn pairs(&self) -> impl Iterator<Item = (usize, &'static str, &'static str)> {
        self.0
            .windows(2)
            .enumerate()
            .map(|(n, pair)| (n, pair[0], pair[1]))
    }

    /// The addresses of the devices between node `n` and the next one, at either end.
    fn ends(&self, n: usize) -> [String; 2] {
        let last = self.0.len() - 2;
        match n {
            0 => ["10.1.0.1".to_owned(), "10.1.255.254".to_owned()],
            n if n == last => ["10.200.255.254".to_owned(), "10.200.0.1".to_owned()],
            n => [format!("10.{}.0.1", 2 + n), format!("10.{}.0.2", 2 + n)],
        }
    }
}

/// The device in front of which the link of a direction has its queue.
pub(crate) const fn queue_device(toward: Toward) -> &'static str {
    match toward {
        Toward::Servers => "r1",
        Toward::Clients => "r0",
    }
}

/// The node and the device of the wire behind the link of a direction.
pub(crate) const fn wire_device(toward: Toward) -> (&'static str, &'static str) {
    match toward {
        Toward::Servers => ("w", "w1"),
        Toward::Clients => ("e", "e0"),
    }
}

/// When a flow starts, and its random numbers.
pub(crate) fn start(config: &Config, flow: &FlowConfig) -> (Instant, Rng) {
    let rng = Rng::new(config.seed).fork("flow").fork(&flow.name);
    (start_of(flow, &rng), rng)
}

/// When a flow is stopped, at the latest with the run.
pub(crate) fn stop(config: &Config, flow: &FlowConfig) -> Instant {
    let end = flow.stop.unwrap_or(Duration::MAX).min(config.duration);
    Instant::ZERO + end
}

/// When the datagrams of a flow are sent.
pub(crate) fn schedule(
    config: &Config,
    flow: &FlowConfig,
    source: &dyn DatagramConfig,
) -> Vec<Instant> {
    let (start, rng) = start(config, flow);
    let stop = stop(config, flow);
    let mut counted = Datagrams::new(start, source, &rng);
    let mut times = Vec::new();
    let mut due = start;
    while due < stop {
        times.push(due);
        due = counted.send(due).1;
    }
    times
}

/// The files of a run, while they are written.
struct Files<'a> {
    folder: &'a Path,
    instructions: String,
}

impl Files<'_> {
    /// Adds an instruction.
    fn say(&mut self, instruction: &str) {
        self.instructions += instruction;
        self.instructions.push('\n');
    }

    /// Adds commands of `ip` or `tc` in the network namespace of a node; `None`: the first namespace.
    fn run(&mut self, program: &str, node: Option<&str>, commands: &[String]) -> io::Result<()> {
        if commands.is_empty() {
            return Ok(());
        }
        let name = format!("batch.{}", self.instructions.len());
        let place = node.map(|node| format!(" -n {node}")).unwrap_or_default();
        self.say(&format!("run {program}{place} -batch /host/{name}"));
        fs::write(self.folder.join(name), commands.join("\n") + "\n")
    }
}

/// Writes the files of a run to `folder`.
///
/// # Errors
/// If they cannot be written.
pub(crate) fn write(plan: &Plan, paths: &Paths, folder: &Path) -> io::Result<()> {
    let config = &plan.config;
    let nodes = Nodes::of(config, paths);
    let (hosts, routes) = addresses(plan, paths);
    let mut files = Files {
        folder,
        instructions: String::new(),
    };
    let created: Vec<_> = (nodes.0.iter())
        .map(|node| format!("netns add {node}"))
        .collect();
    files.run("ip", None, &created)?;
    settings(&nodes, &mut files);
    for node in &nodes.0 {
        files.run("ip", Some(node), &devices(&nodes, node))?;
    }
    for (_, left, right) in nodes.pairs() {
        files.say(&format!("plain {left} {left}1"));
        files.say(&format!("plain {right} {right}0"));
    }
    for node in &nodes.0 {
        files.run("ip", Some(node), &addressing(&nodes, node, &hosts, &routes))?;
    }
    for toward in Toward::BOTH {
        files.run("tc", Some("d"), &delays(plan, paths, toward))?;
    }
    let nanos = Duration::as_nanos;
    let (sample, measure, end) = (config.sample, config.measure_from, config.duration);
    files.say(&format!(
        "clock {} {} {}",
        nanos(sample),
        nanos(measure),
        nanos(end)
    ));
    let mut changes = Vec::new();
    for toward in Toward::BOTH {
        let Some(link) = paths.links.of(toward).map(|n: usize| &config.links[n]) else {
            continue;
        };
        let device = queue_device(toward);
        for (file, value) in module_parameters(link)? {
            files.say(&format!("set - /sys/module/{file} {value}"));
        }
        files.run("tc", Some("r"), &queue(link, device)?)?;
        files.say(&format!("stats r {device}"));
        if link.has_wire() {
            let (node, device) = wire_device(toward);
            let netem = format!("qdisc add dev {device} root handle 1: {}", wire(link, link));
            files.run("tc", Some(node), &[netem])?;
            files.say(&format!("stats {node} {device}"));
        }
        changes.extend(changed(link, toward)?);
    }
    if !config.links.is_empty() {
        for device in ["r0", "r1"] {
            files.say(&format!("tap r {device} {FIRST_PORT}"));
        }
    }
    changes.sort_by_key(|(at, _)| *at);
    for (at, command) in changes {
        files.say(&format!("at {} {command}", nanos(at)));
    }
    for (n, flow) in config.flows.iter().enumerate() {
        traffic(config, n, flow, paths.data[n], &hosts[n], &mut files)?;
    }
    files.say("go");
    fs::write(folder.join("instructions"), files.instructions)
}

/// The settings of the nodes.
fn settings(nodes: &Nodes, files: &mut Files<'_>) {
    for node in &nodes.0 {
        // The devices come later and get it from here.
        files.say(&format!("set {node} net/ipv6/conf/default/disable_ipv6 1"));
        if matches!(*node, "c" | "s") {
            files.say(&format!("set {node} net/ipv4/tcp_rmem {READ_BUFFER}"));
            files.say(&format!("set {node} net/ipv4/tcp_wmem {WRITE_BUFFER}"));
            files.say(&format!("set {node} net/ipv4/tcp_no_metrics_save 1"));
        } else {
            files.say(&format!("set {node} net/ipv4/ip_forward 1"));
        }
    }
    // In pages: more than all buffers take.
    files.say("set - net/ipv4/tcp_mem 200000 300000 400000");
}

/// The devices that connect a node to the next one.
fn devices(nodes: &Nodes, node: &str) -> Vec<String> {
    let next = nodes.pairs().find(|(_, left, _)| *left == node);
    let line = next.map(|(n, left, right)| {
        let [a, b] = [1, 2].map(|end| hardware(n, end));
        format!(
            "link add {left}1 address {a} type veth peer name {right}0 netns {right} address {b}"
        )
    });
    line.into_iter().collect()
}

/// The Ethernet address at an end of the devices between node `n` and the next one.
fn hardware(n: usize, end: u8) -> String {
    format!("02:00:00:00:{n:02x}:{end:02x}")
}

/// The addresses, neighbours and routes of a node.
fn addressing(
    nodes: &Nodes,
    node: &str,
    hosts: &[Addresses],
    routes: &[(Toward, String, crate::network::Route)],
) -> Vec<String> {
    let mut lines = vec!["link set lo up".to_owned()];
    let last = nodes.0.len() - 2;
    let mut own: Vec<&str> = match node {
        "c" => hosts
            .iter()
            .map(|h| h.client.as_str())
            .chain(["10.1.0.1"])
            .collect(),
        "s" => hosts
            .iter()
            .map(|h| h.server.as_str())
            .chain(["10.200.0.1"])
            .collect(),
        _ => Vec::new(),
    };
    own.sort_unstable();
    own.dedup();
    for (n, left, right) in nodes.pairs() {
        let ends = nodes.ends(n);
        for (side, (here, device)) in [(left, format!("{left}1")), (right, format!("{right}0"))]
            .into_iter()
            .enumerate()
        {
            if here != node {
                continue;
            }
            let bits = if n == 0 || n == last { 16 } else { 24 };
            if own.is_empty() {
                lines.push(format!("addr add {}/{bits} dev {device}", ends[side]));
            }
            lines.extend(
                own.iter()
                    .map(|address| format!("addr add {address}/{bits} dev {device}")),
            );
            lines.push(format!("link set {device} up"));
            // Those at the other end.
            let peer = hardware(n, if side == 0 { 2 } else { 1 });
            let mut others: Vec<&str> = match (side, n) {
                (1, 0) => hosts.iter().map(|h| h.client.as_str()).collect(),
                (0, n) if n == last => hosts.iter().map(|h| h.server.as_str()).collect(),
                _ => Vec::new(),
            };
            others.push(&ends[1 - side]);
            others.sort_unstable();
            others.dedup();
            for other in others {
                lines.push(format!(
                    "neigh replace {other} lladdr {peer} dev {device} nud permanent"
                ));
            }
            let gateway = &ends[1 - side];
            match (side, node) {
                (0, "c") | (1, "s") => {
                    lines.push(format!("route add default via {gateway}"));
                    let from = if side == 0 {
                        Toward::Servers
                    } else {
                        Toward::Clients
                    };
                    for (_, receiver, route) in routes.iter().filter(|(to, ..)| *to == from) {
                        let ecn = if route.ecn { " features ecn" } else { "" };
                        let window = route.initial_window;
                        lines.push(format!(
                            "route add {receiver}/32 via {gateway}{ecn} initcwnd {window}"
                        ));
                    }
                }
                (0, _) if n != last => lines.push(format!("route add 10.200.0.0/16 via {gateway}")),
                (1, _) if n != 0 => lines.push(format!("route add 10.1.0.0/16 via {gateway}")),
                _ => {}
            }
        }
    }
    lines
}

/// The queue of a link in front of a device, and its shaper.
fn queue(link: &LinkConfig, device: &str) -> io::Result<Vec<String>> {
    let words = match module_queue(link)? {
        Some(queue) => queue.name.to_owned(),
        None => queue_words(link.qdisc.tc_line(Some(link.rate)))?,
    };
    let Some(shaper) = shaper(link, link.rate) else {
        return Ok(vec![format!(
            "qdisc add dev {device} root handle 10: {words}"
        )]);
    };
    let mut lines = match shaper {
        Shaping::Htb(class) => vec![
            format!("qdisc add dev {device} root handle 1: htb default 1"),
            format!("class add dev {device} parent 1: classid 1:1 {class}"),
        ],
        Shaping::Tbf(tbf) => vec![format!("qdisc add dev {device} root handle 1: {tbf}")],
    };
    lines.push(format!(
        "qdisc add dev {device} parent 1:1 handle 10: {words}"
    ));
    Ok(lines)
}

/// The queue of a link, if a module of Sojourn has it.
fn module_queue(link: &LinkConfig) -> io::Result<Option<ModuleQueue>> {
    let queue = link.qdisc.module_queue(link.rate).transpose();
    queue.map_err(|error| io::Error::other(error.to_string()))
}

/// With what a new queue of its module begins: files below `/sys/module`, and what is written to them.
fn module_parameters(link: &LinkConfig) -> io::Result<Vec<(String, u64)>> {
    let queue = module_queue(link)?;
    let parameters = queue.into_iter().flat_map(|queue| {
        let file = move |(name, value)| (format!("{}/parameters/{name}", queue.module), value);
        queue.parameters.into_iter().map(file)
    });
    Ok(parameters.collect())
}

/// The words of a queue. No address is translated in the guest, whose kernel refuses both words of `cake` without
/// connection tracking.
fn queue_words<E: std::fmt::Display>(line: Result<String, E>) -> io::Result<String> {
    let line = line.map_err(|error| io::Error::other(error.to_string()))?;
    let words = line
        .split(' ')
        .filter(|word| !matches!(*word, "nat" | "nonat"));
    Ok(words.collect::<Vec<_>>().join(" "))
}

/// The words of a shaper.
enum Shaping {
    Htb(String),
    Tbf(String),
}

fn shaper(link: &LinkConfig, rate: Rate) -> Option<Shaping> {
    let bucket = link.bucket()?;
    let bits = rate.bits_per_sec();
    Some(match link.shaper {
        // No limit of its own: the queue has one.
        Shaper::Tbf { .. } => Shaping::Tbf(format!(
            "tbf rate {bits}bit burst {bucket} limit 1000000000"
        )),
        _ => Shaping::Htb(format!(
            "htb rate {bits}bit burst {bucket}b cburst {bucket}b quantum 1514"
        )),
    })
}

/// The wire behind a link as it is `now`.
fn wire(link: &LinkConfig, now: &LinkConfig) -> String {
    let mut text = format!("netem limit {WIRE_LIMIT}");
    if now.delay > Duration::ZERO {
        let _ = write!(text, " delay {}", in_tc(now.delay));
    }
    let loss = probability(now.line.loss).unwrap_or_default();
    if loss > 0.0 {
        let _ = write!(text, " loss {}%", 100.0 * loss);
    }
    if link.is_serial() {
        let _ = write!(text, " rate {}bit", now.rate.bits_per_sec());
    }
    text
}

/// A time as `tc` reads it for `netem`, which has no unit below the microsecond.
fn in_tc(time: Duration) -> String {
    let nanos = time.as_nanos();
    format!("{}.{:03}us", nanos / 1_000, nanos % 1_000)
}

/// The changes of a link: when, and the command.
fn changed(link: &LinkConfig, toward: Toward) -> io::Result<Vec<(Duration, String)>> {
    let device = queue_device(toward);
    let (node, wire_name) = wire_device(toward);
    let mut now = link.clone();
    let mut commands = Vec::new();
    for Change {
        at,
        rate,
        queue,
        wire: new,
    } in &link.changes
    {
        now.rate = rate.unwrap_or(now.rate);
        now.delay = new.delay.unwrap_or(now.delay);
        now.line.loss = new.loss.unwrap_or(now.line.loss);
        if rate.is_some() {
            let command = match shaper(link, now.rate) {
                Some(Shaping::Htb(class)) => Some(format!(
                    "class change dev {device} parent 1: classid 1:1 {class}"
                )),
                Some(Shaping::Tbf(tbf)) => {
                    Some(format!("qdisc change dev {device} root handle 1: {tbf}"))
                }
                None => None,
            };
            commands.extend(command.map(|command| (*at, format!("tc -n r {command}"))));
        }
        if link.has_wire() {
            let words = wire(link, &now);
            commands.push((
                *at,
                format!("tc -n {node} qdisc change dev {wire_name} root handle 1: {words}"),
            ));
        }
        if let Some(QueueChange::Parameters(spec)) = queue.as_deref() {
            let words = queue_words(spec.tc_line(Some(now.rate)))?;
            let parent = if link.bucket().is_some() {
                "parent 1:1"
            } else {
                "root"
            };
            commands.push((
                *at,
                format!("tc -n r qdisc change dev {device} {parent} handle 10: {words}"),
            ));
        }
    }
    Ok(commands)
}

/// The delays of the paths in a direction: one `netem` for each, and a filter for all flows but those of the first.
fn delays(plan: &Plan, paths: &Paths, toward: Toward) -> Vec<String> {
    let device = match toward {
        Toward::Servers => "d1",
        Toward::Clients => "d0",
    };
    let netem = |delay: Duration| format!("netem limit {WIRE_LIMIT} delay {}", in_tc(delay));
    let classes = paths.classes(toward);
    match classes.as_slice() {
        [] | [Duration::ZERO] => return Vec::new(),
        [only] => {
            return vec![format!(
                "qdisc add dev {device} root handle 1: {}",
                netem(*only)
            )];
        }
        _ => {}
    }
    let map = ["0"; 16].join(" ");
    let bands = classes.len();
    let mut lines = vec![format!(
        "qdisc add dev {device} root handle 1: prio bands {bands} priomap {map}"
    )];
    for (band, delay) in (1..).zip(&classes) {
        lines.push(format!(
            "qdisc add dev {device} parent 1:{band:x} handle {:x}: {}",
            0x20 + band,
            netem(*delay)
        ));
    }
    for (n, (delay, flow)) in paths.delays(toward).zip(&plan.config.flows).enumerate() {
        let band = 1 + classes
            .iter()
            .position(|&class| class == delay)
            .unwrap_or(0);
        if band == 1 {
            continue;
        }
        let matches = match &flow.traffic {
            Traffic::Datagrams(config) if config.kind().payload().is_none() => {
                format!("match ip protocol 1 0xff match u16 {n:#x} 0xffff at 24")
            }
            _ => {
                let side = if paths.data[n] == toward {
                    "dport"
                } else {
                    "sport"
                };
                format!("match ip {side} {} 0xffff", usize::from(FIRST_PORT) + n)
            }
        };
        lines.push(format!(
            "filter add dev {device} parent 1: protocol ip u32 {matches} flowid 1:{band:x}"
        ));
    }
    lines
}

/// The two ends of a flow.
fn traffic(
    config: &Config,
    n: usize,
    flow: &FlowConfig,
    data: Toward,
    hosts: &Addresses,
    files: &mut Files<'_>,
) -> io::Result<()> {
    let [(source, from), (sink, to)] = match data {
        Toward::Servers => [("c", &hosts.client), ("s", &hosts.server)],
        Toward::Clients => [("s", &hosts.server), ("c", &hosts.client)],
    };
    let port = usize::from(FIRST_PORT) + n;
    let tos = flow.dscp.number() << 2;
    match &flow.traffic {
        Traffic::Tcp { bytes, params } => {
            let bytes = bytes.unwrap_or(0);
            let options = options(params, tos);
            let times = [start(config, flow).0, stop(config, flow)];
            let [start, stop] = times.map(Instant::as_nanos);
            let window = window(params);
            files.say(&format!("sink {sink} {n} {port} {bytes} {options}{window}"));
            files.say(&format!(
                "source {source} {n} {from} {to} {port} {start} {stop} {bytes} {options}"
            ));
        }
        Traffic::Datagrams(datagrams) => {
            let kind = datagrams.kind();
            let payload = kind.payload().map_or(0, |Bytes(payload)| payload);
            let echo = u8::from(kind.is_echo());
            let times = schedule(config, flow, &**datagrams);
            let bytes: Vec<u8> = (times.iter())
                .flat_map(|time| time.as_nanos().to_le_bytes())
                .collect();
            fs::write(files.folder.join(format!("schedule.{n}")), bytes)?;
            if payload > 0 {
                files.say(&format!("receiver {sink} {n} {port} {echo} {tos}"));
            }
            files.say(&format!(
                "sender {source} {n} {from} {to} {port} {payload} {echo} {tos}"
            ));
        }
        // Refused before.
        Traffic::Quic { .. } | Traffic::App(_) | Traffic::Program(_) | Traffic::Bridged => {}
    }
    Ok(())
}

/// The options of both sockets of a connection.
fn options(params: &SenderParams, tos: u8) -> String {
    let mut text = format!("cc={}", params.cc.kind().name());
    if tos != 0 {
        let _ = write!(text, ",tos={tos}");
    }
    if params.mss != full_payload(params.ip) {
        let _ = write!(text, ",mss={}", params.mss + TIMESTAMPS);
    }
    if params.pacing {
        text += ",pace=1";
    }
    text
}

/// The option of the socket that receives.
fn window(params: &SenderParams) -> String {
    match params.receiver.buffer {
        ReceiveBuffer::Fixed(bytes) => format!(",window={bytes}"),
        ReceiveBuffer::Unlimited | ReceiveBuffer::Tuned(_) => String::new(),
    }
}
