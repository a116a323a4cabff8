//! Captures are read by tshark (Wireshark), if it is installed: every test states that it is skipped.

#![expect(clippy::unwrap_used, reason = "a test may panic")]
#![expect(clippy::print_stderr, reason = "a skipped test says so")]

mod path;
mod wireshark;

use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};

use path::{Capture, Script, run};
use sojourn_capture::{
    Connection, Direction, Endpoints, Interface, Protocol, Record, Role, Section, Synth, Verdict,
    Writer, address,
};
use sojourn_net::{Dscp, Ecn, FlowKey, Instant, IpVersion, TcpHeader};
use sojourn_transport::{SenderParams, full_payload};
use wireshark::{FAULTY, count, fields, has_tshark, rows, select, tshark};

/// A capture in which the connection of `script` is recorded.
fn captured(script: &Script<'_>) -> (tempfile::TempDir, PathBuf, path::Outcome) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("run.pcapng");
    let mut capture = Capture::new(
        BufWriter::new(File::create(&file).unwrap()),
        script.is_whole,
    );
    let outcome = run(script, &mut capture);
    capture.writer.finish().unwrap();
    (folder, file, outcome)
}

#[test]
fn a_connection_without_losses_has_no_findings() {
    if !has_tshark("a_connection_without_losses_has_no_findings") {
        return;
    }
    for ip in IpVersion::ALL {
        for is_whole in [false, true] {
            check_without_losses(ip, is_whole);
        }
    }
}

fn check_without_losses(ip: IpVersion, is_whole: bool) {
    // Full-sized segments, one of 1 byte and one of 500 within the connection, and the FIN.
    let mss = full_payload(ip);
    let writes = [200_000, 1, mss.into(), 500, 100_000];
    let (_folder, file, outcome) = captured(&Script {
        params: SenderParams {
            ip,
            mss,
            ..SenderParams::default()
        },
        writes: &writes,
        is_whole,
        ..Script::default()
    });
    assert_eq!(outcome.sender.counters().resent, 0);
    let bytes: u64 = writes.iter().sum();
    assert_eq!(outcome.receiver.delivered_bytes(), bytes);
    // Where the sender is, and behind the queue.
    for point in ["down.enq", "down.deq"] {
        let selected = select(&file, &[point, "up.deq"]);
        let found = format!("tcp.analysis.flags || {FAULTY}");
        assert_eq!(tshark(&selected, &["-Y", &found]), [""; 0]);
        let source = match ip {
            IpVersion::V4 => "ip.src",
            IpVersion::V6 => "ipv6.src",
        };
        let names = [
            source,
            "tcp.srcport",
            "tcp.dstport",
            "tcp.seq_raw",
            "tcp.options.mss_val",
            "tcp.options.wscale.shift",
            "tcp.options.sack_perm",
            "tcp.ack",
            "tcp.len",
            "tcp.window_size",
            "tcp.checksum.status",
        ];
        let packets = rows(&selected, "tcp", &names);
        let syns: Vec<_> = packets[..2].iter().map(|syn| syn[..6].join(" ")).collect();
        // The option counts IP and TCP headers without options: 1500 - 20 - 20 or 1500 - 40 - 20 (RFC 9293 §3.7.1).
        let (addresses, option) = match ip {
            IpVersion::V4 => (["198.18.0.1", "198.18.0.2"], 1_460),
            IpVersion::V6 => (["2001:2::1", "2001:2::2"], 1_440),
        };
        let [a, b] = addresses;
        let expected = [
            format!("{a} 49159 5001 1000000000 {option} 11"),
            format!("{b} 5001 49159 2000000000 {option} 11"),
        ];
        assert_eq!(syns, expected);
        let permits = packets.iter().map(|packet| !packet[6].is_empty());
        let permits: Vec<_> = permits.collect();
        assert!(permits[0] && permits[1] && !permits[2..].contains(&true));
        // Relative numbers: the FIN acknowledged is the byte after the last and the SYN.
        let last = packets.last().unwrap();
        assert_eq!(
            (&*last[0], &last[7]),
            (addresses[1], &(bytes + 2).to_string())
        );
        assert!(packets.len() > 200);
        for packet in &packets {
            let (has_data, status) = (packet[8] != "0", &*packet[10]);
            assert!(!has_data || packet[9] == "65536", "{packet:?}");
            // Good, or unverified.
            let expected = if is_whole || !has_data { "1" } else { "2" };
            assert_eq!(status, expected, "{packet:?}");
        }
    }
}

#[test]
fn losses_are_the_retransmissions_that_tshark_sees() {
    if !has_tshark("losses_are_the_retransmissions_that_tshark_sees") {
        return;
    }
    let (_folder, file, outcome) = captured(&Script {
        writes: &[300_000, 77, 300_000],
        // Three holes at once, and the segment after the short one.
        drops: &[40, 42, 44, 209],
        ..Script::default()
    });
    let resent = usize::try_from(outcome.sender.counters().resent).unwrap();
    assert_eq!((outcome.dropped, resent), (4, 4));

    // Where the sender is, every loss is a retransmission. tshark calls those within a round trip after newer
    // data out of order.
    let names = [
        "tcp.analysis.retransmission",
        "tcp.analysis.out_of_order",
        "tcp.analysis.lost_segment",
        "tcp.analysis.ack_lost_segment",
        "_ws.malformed",
        "tcp.options.sack.count",
        "tcp.options.sack_le",
        "tcp.options.sack_re",
    ];
    let sent = rows(&select(&file, &["down.enq", "up.deq"]), "tcp", &names);
    let count = |rows: &[Vec<String>], columns: &[usize]| {
        let has = |row: &&Vec<String>| columns.iter().any(|column| !row[*column].is_empty());
        rows.iter().filter(has).count()
    };
    assert_eq!(count(&sent, &[0, 1]), resent);
    assert_eq!(count(&sent, &[2, 3, 4]), 0);
    assert!(sent.iter().any(|packet| packet[5] == "3"), "SACK blocks");
    let first = sent.iter().find(|packet| packet[5] == "1").unwrap();
    // Segment 40 is missing, and 41 is there.
    let start = 1 + 41 * 1_448;
    assert_eq!(first[6..], [start.to_string(), (start + 1_448).to_string()]);

    // Behind the queue, every loss is a gap.
    let passed = rows(&select(&file, &["down.deq", "up.deq"]), "tcp", &names);
    assert_eq!(count(&passed, &[2]), outcome.dropped);
    assert_eq!(count(&passed, &[3, 4]), 0);
    let verdicts = fields(
        &file,
        "frame.interface_name == \"down.drop\"",
        &["frame.comment", "frame.verdict.ebpf_tc", "tcp.nxtseq"],
    );
    assert_eq!(verdicts.len(), outcome.dropped);
    assert!(
        verdicts[0].starts_with("dropped: codel aqm|2|"),
        "{verdicts:?}"
    );
}

#[test]
fn a_packet_has_one_number_at_all_points() {
    if !has_tshark("a_packet_has_one_number_at_all_points") {
        return;
    }
    let (_folder, file, outcome) = captured(&Script {
        writes: &[100_000],
        drops: &[20],
        marks: &[30, 31],
        params: SenderParams {
            ecn: true,
            ..SenderParams::default()
        },
        ..Script::default()
    });
    let seen = |point: &str| {
        let filter = format!("frame.interface_name == \"{point}\"");
        let names = [
            "frame.packet_id",
            "tcp.seq_raw",
            "ip.id",
            "tcp.options.timestamp.tsval",
        ];
        fields(&file, &filter, &names)
    };
    let (mut entered, left, dropped) = (seen("down.enq"), seen("down.deq"), seen("down.drop"));
    assert_eq!(dropped.len(), 1);
    entered.retain(|packet| !dropped.contains(packet));
    assert_eq!(entered, left);
    let marked = fields(
        &file,
        "ip.dsfield.ecn == 3",
        &[
            "frame.interface_name",
            "frame.comment",
            "frame.packet_flags_direction",
        ],
    );
    assert_eq!(
        marked,
        vec!["down.deq|marked CE: codel aqm|0x00000002"; outcome.marked]
    );
    assert!(count(&file, "tcp.flags.ece == 1 && ip.src == 198.18.0.2") > 0);
    assert!(count(&file, "tcp.flags.cwr == 1 && tcp.len > 0") > 0);
}

#[test]
fn accurate_ecn_is_dissected() {
    if !has_tshark("accurate_ecn_is_dissected") {
        return;
    }
    let (_folder, file, _) = captured(&Script {
        writes: &[100_000],
        marks: &[30, 31],
        params: SenderParams {
            accurate_ecn: true,
            ..SenderParams::default()
        },
        ..Script::default()
    });
    let selected = select(&file, &["down.deq", "up.deq"]);
    assert_eq!(tshark(&selected, &["-Y", FAULTY]), [""; 0]);
    assert_eq!(
        count(&selected, "tcp.flags == 0x1c2"),
        1,
        "AE, CWR and ECE of the SYN"
    );
}

/// Segments of a connection with data both ways, by role: index, payload, acknowledged index, flags.
const BOTH_WAYS: [(Role, u32, u16, u32, u16); 15] = {
    use Role::{Ack, Data, Request, RequestAck};
    const SYN: u16 = TcpHeader::SYN;
    const ACK: u16 = TcpHeader::ACK;
    const FIN: u16 = TcpHeader::ACK | TcpHeader::FIN;
    [
        // The end that asks opens the connection.
        (Request, 0, 0, 0, SYN),
        (RequestAck, 0, 0, 0, SYN | ACK),
        (Request, 0, 0, 0, ACK),
        (Request, 0, 300, 0, ACK),
        (RequestAck, 0, 0, 1, ACK),
        (Data, 0, 1_448, 0, ACK),
        (Data, 1, 100, 0, ACK),
        (Ack, 0, 0, 2, ACK),
        (Request, 1, 301, 0, ACK),
        (Data, 2, 1_448, 0, ACK),
        (RequestAck, 0, 0, 2, ACK),
        (Data, 3, 7, 0, FIN),
        (Ack, 0, 0, 4, ACK),
        (Request, 2, 0, 0, FIN),
        (RequestAck, 0, 0, 3, ACK),
    ]
};

#[test]
fn a_connection_with_data_both_ways_has_no_findings() {
    if !has_tshark("a_connection_with_data_both_ways_has_no_findings") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("both.pcapng");
    let out = BufWriter::new(File::create(&file).unwrap());
    let mut writer = Writer::new(out, &Section::default());
    let point = writer.add(&Interface::new("down.deq"));
    let mut connection = Connection::new(1_448);
    let mut buffer = Vec::new();
    for (ms, (role, seq, payload, ack, flags)) in (0..).zip(BOTH_WAYS) {
        let header = TcpHeader {
            seq,
            ack,
            payload: payload.into(),
            window: 65_536,
            flags,
            timestamps: Some((ms, ms.saturating_sub(1))),
            ..TcpHeader::default()
        };
        // A client that receives data, and its server.
        let (client, server) = (256, (1 << 32) + 9);
        let (source, destination) = match role {
            Role::Data | Role::RequestAck => (server, client),
            Role::Ack | Role::Request => (client, server),
        };
        let key = FlowKey {
            source,
            destination,
            ports: 9,
            protocol: 6,
        };
        let ends = Endpoints::of(&key, IpVersion::V4, false).unwrap();
        let headers = Synth {
            source: ends.source,
            destination: ends.destination,
            ecn: Ecn::NotEct,
            dscp: Dscp::DEFAULT,
            ttl: 64,
            identification: 0,
            protocol: Protocol::Tcp(connection.send(role, &header)),
            payload,
        };
        let record = Record {
            at: Instant::from_millis(ms.into()),
            id: None,
            direction: Direction::Outbound,
            queue: None,
            verdict: Verdict::Passed,
            length: headers.write(&mut buffer).unwrap(),
            data: &buffer,
        };
        writer.write(point, &record);
    }
    writer.finish().unwrap();
    let found = format!("tcp.analysis.flags || {FAULTY}");
    assert_eq!(tshark(&file, &["-Y", &found]), [""; 0]);
    let ends = fields(
        &file,
        "frame.number >= 14",
        &["ip.src", "tcp.seq", "tcp.ack"],
    );
    assert_eq!(ends, ["198.18.1.0|602|3005", "10.0.0.9|3005|603"]);
}

#[test]
fn datagrams_and_echoes_have_no_findings() {
    if !has_tshark("datagrams_and_echoes_have_no_findings") {
        return;
    }
    for ip in IpVersion::ALL {
        check_datagrams(ip);
    }
}

fn check_datagrams(ip: IpVersion) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("datagrams.pcapng");
    write_datagrams(&file, ip);
    let faults = fields(
        &file,
        FAULTY,
        &["frame.number", "_ws.col.Info", "_ws.expert.message"],
    );
    assert_eq!(faults, [""; 0]);
    let (class, echo, headers) = match ip {
        IpVersion::V4 => (
            "ip.dsfield.dscp == 46 && ip.dsfield.ecn == 1 && ip.ttl == 63",
            "icmp",
            20 + 8,
        ),
        IpVersion::V6 => (
            "ipv6.tclass.dscp == 46 && ipv6.tclass.ecn == 1 && ipv6.hlim == 63",
            "icmpv6",
            40 + 8,
        ),
    };
    assert_eq!(count(&file, class), 120);
    let answered = format!("{echo}.resp_to");
    assert_eq!(count(&file, &answered), 20, "replies match requests");
    assert_eq!(count(&file, "udp.port == 443"), 60);
    let good = format!("udp.checksum.status == 1 || {echo}.checksum.status == 1");
    assert_eq!(count(&file, &good), 120);
    let first = fields(
        &file,
        "frame.number == 1",
        &[
            "frame.time_epoch",
            "frame.len",
            "frame.cap_len",
            "frame.interface_queue",
        ],
    );
    let length = 160 + headers;
    assert_eq!(first, [format!("0.001000001|{length}|{length}|9")]);
}

/// Twenty times a datagram, packets of QUIC with both headers, and an echo with its reply.
fn write_datagrams(file: &Path, ip: IpVersion) {
    let out = BufWriter::new(File::create(file).unwrap());
    let mut writer = Writer::new(out, &Section::default());
    let point = writer.add(&Interface {
        snap_length: 65_535,
        ..Interface::new("down.deq")
    });
    writer.names([(address(1, ip).unwrap(), "sender")]);
    let mut buffer = Vec::new();
    let mut time = 0;
    for sequence in 1..=20 {
        let identifier = 3;
        let protocols = [
            (Protocol::Udp, 160, (1, 2)),
            (Protocol::Quic { long: true }, 1_200, (1, 2)),
            (Protocol::Quic { long: false }, 1_400, (1, 2)),
            (Protocol::Quic { long: false }, 30, (2, 1)),
            (
                Protocol::EchoRequest {
                    identifier,
                    sequence,
                },
                56,
                (1, 2),
            ),
            (
                Protocol::EchoReply {
                    identifier,
                    sequence,
                },
                56,
                (2, 1),
            ),
        ];
        for (protocol, payload, (source, destination)) in protocols {
            let key = FlowKey {
                source,
                destination,
                ports: 3,
                protocol: 17,
            };
            let is_quic = matches!(protocol, Protocol::Quic { .. });
            let ends = Endpoints::of(&key, ip, is_quic).unwrap();
            let headers = Synth {
                source: ends.source,
                destination: ends.destination,
                ecn: Ecn::Ect1,
                dscp: Dscp::EF,
                ttl: 63,
                identification: 0,
                protocol,
                payload,
            };
            let length = headers.write(&mut buffer).unwrap();
            buffer.resize(length as usize, 0);
            time += 1_000_001;
            let record = Record {
                at: Instant::from_nanos(time),
                id: Some(time),
                direction: Direction::Outbound,
                queue: Some(9),
                verdict: Verdict::Passed,
                length,
                data: &buffer,
            };
            writer.write(point, &record);
        }
    }
    writer.finish().unwrap();
}
