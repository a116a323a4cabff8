//! What the writer writes is read back, to the byte.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod reading;

use std::io::{self, Write};
use std::net::Ipv4Addr;

use reading::{Block, blocks};
use sojourn_capture::{
    Direction, Interface, LinkType, Point, Record, SNAP_LENGTH, Section, Verdict, Writer,
};
use sojourn_net::{Instant, Rate};
use sojourn_qdisc::{DropReason, MarkReason};

const PACKET: Record<'_> = Record {
    at: Instant::ZERO,
    id: None,
    direction: Direction::Unknown,
    queue: None,
    verdict: Verdict::Passed,
    length: 4,
    data: &[1, 2, 3, 4],
};

/// The blocks of a capture with the point `down.enq` of queue `fq_codel`.
fn written(section: &Section<'_>, fill: impl FnOnce(&mut Writer<Vec<u8>>, Point)) -> Vec<Block> {
    let mut writer = Writer::new(Vec::new(), section);
    let point = writer.add(&Interface {
        queue: Some("fq_codel"),
        ..Interface::new("down.enq")
    });
    fill(&mut writer, point);
    blocks(&writer.finish().unwrap())
}

#[test]
fn a_capture_is_written_byte_by_byte() {
    let mut writer = Writer::new(Vec::new(), &Section::default());
    let point = writer.add(&Interface::new("a"));
    writer.write(
        point,
        &Record {
            at: Instant::from_nanos(0x1_0000_0002),
            ..PACKET
        },
    );
    let bytes = writer.finish().unwrap();
    let version = concat!("sojourn ", env!("CARGO_PKG_VERSION"));
    let padded = version.len().next_multiple_of(4);
    let mut expected = Vec::new();
    let length = u32::try_from(24 + 4 + padded + 4 + 4).unwrap();
    expected.extend([0x0A, 0x0D, 0x0D, 0x0A]);
    expected.extend(length.to_le_bytes());
    expected.extend([0x4D, 0x3C, 0x2B, 0x1A, 1, 0, 0, 0]);
    expected.extend([0xFF; 8]);
    expected.extend([4, 0, u8::try_from(version.len()).unwrap(), 0]);
    expected.extend(version.as_bytes());
    expected.resize(28 + padded, 0);
    expected.extend([0; 4]);
    expected.extend(length.to_le_bytes());
    expected.extend([1, 0, 0, 0, 40, 0, 0, 0, 101, 0, 0, 0, 128, 0, 0, 0]);
    expected.extend([2, 0, 1, 0, b'a', 0, 0, 0, 9, 0, 1, 0, 9, 0, 0, 0]);
    expected.extend([0, 0, 0, 0, 40, 0, 0, 0]);
    expected.extend([6, 0, 0, 0, 48, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0]);
    expected.extend([4, 0, 0, 0, 4, 0, 0, 0, 1, 2, 3, 4]);
    expected.extend([2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 48, 0, 0, 0]);
    expected.extend([5, 0, 0, 0, 52, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0]);
    expected.extend([4, 0, 8, 0, 1, 0, 0, 0, 0, 0, 0, 0]);
    expected.extend([5, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    expected.extend([0, 0, 0, 0, 52, 0, 0, 0]);
    assert_eq!(bytes, expected);
}

#[test]
fn the_section_states_where_the_capture_comes_from() {
    let section = Section {
        hardware: Some("simulated"),
        os: Some("none"),
        comment: Some("run 7, manifest sha256:0123"),
        base: 0,
    };
    let blocks = written(&section, |_, _| {});
    assert_eq!(blocks[0].text(1), section.comment);
    assert_eq!(blocks[0].text(2), section.hardware);
    assert_eq!(blocks[0].text(3), section.os);
    let version = concat!("sojourn ", env!("CARGO_PKG_VERSION"));
    assert_eq!(blocks[0].text(4), Some(version));
}

#[test]
fn a_point_is_an_interface() {
    let mut writer = Writer::new(Vec::new(), &Section::default());
    writer.add(&Interface {
        description: Some("leaves the queue"),
        rate: Rate::from_bits_per_sec(10_000_000_000),
        link: LinkType::Ethernet,
        snap_length: u32::MAX,
        ..Interface::new("down.deq")
    });
    let blocks = blocks(&writer.finish().unwrap());
    let interface = &blocks[1];
    assert_eq!((interface.kind, interface.field(0)), (1, 1));
    assert_eq!(interface.field(4), 262_144, "more is not accepted");
    assert_eq!(interface.text(2), Some("down.deq"));
    assert_eq!(interface.text(3), Some("leaves the queue"));
    assert_eq!(interface.number(8), Some(10_000_000_000));
    assert_eq!(interface.option(9), Some(&[9][..]));
}

#[test]
fn a_packet_carries_its_number_direction_queue_and_verdict() {
    let section = Section {
        base: 1_700_000_000_000_000_000,
        ..Section::default()
    };
    let verdicts = [
        (Verdict::Passed, None),
        (
            Verdict::Dropped(DropReason::Aqm),
            Some("dropped: fq_codel aqm"),
        ),
        (
            Verdict::Dropped(DropReason::Overlimit),
            Some("dropped: fq_codel overlimit"),
        ),
        (
            Verdict::Marked(MarkReason::Aqm),
            Some("marked CE: fq_codel aqm"),
        ),
        (
            Verdict::Marked(MarkReason::CeThreshold),
            Some("marked CE: fq_codel ce_threshold"),
        ),
        (Verdict::Lost, Some("lost on the wire")),
    ];
    for (verdict, comment) in verdicts {
        let blocks = written(&section, |writer, point| {
            let record = Record {
                at: Instant::from_nanos(123_456_789),
                id: Some(1 << 40),
                direction: Direction::Outbound,
                queue: Some(77),
                verdict,
                ..PACKET
            };
            writer.write(point, &record);
        });
        let packet = &blocks[2];
        assert_eq!(packet.time(), 1_700_000_000_123_456_789);
        assert_eq!(packet.data(), [1, 2, 3, 4]);
        assert_eq!(packet.number(2), Some(2), "outbound");
        assert_eq!(packet.number(5), Some(1 << 40));
        assert_eq!(packet.number(6), Some(77));
        assert_eq!(packet.text(1), comment);
        let dropped = matches!(verdict, Verdict::Dropped(_));
        let shot = [1, 2, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(packet.option(7), dropped.then_some(&shot[..]));
        let statistics = &blocks[3];
        assert_eq!(statistics.time(), packet.time());
        assert_eq!(statistics.number(4), Some(1));
        assert_eq!(statistics.number(5), Some(dropped.into()));
    }
}

#[test]
fn directions_are_the_lowest_bits_of_the_flags() {
    for (direction, bits) in [
        (Direction::Unknown, 0),
        (Direction::Inbound, 1),
        (Direction::Outbound, 2),
    ] {
        let blocks = written(&Section::default(), |writer, point| {
            writer.write(
                point,
                &Record {
                    direction,
                    ..PACKET
                },
            );
        });
        assert_eq!(blocks[2].number(2), Some(bits));
    }
}

#[test]
fn statistics_of_a_point_without_packets_have_the_time_of_the_origin() {
    let section = Section {
        base: 1_700_000_000_000_000_000,
        ..Section::default()
    };
    let blocks = written(&section, |_, _| {});
    assert_eq!(blocks[2].time(), section.base);
    assert_eq!(blocks[2].number(4), Some(0));
}

#[test]
fn the_captured_part_is_no_longer_than_the_snap_length() {
    for (held, length, kept) in [
        (1_500, 1_500, 128),
        (127, 1_500, 127),
        (128, 128, 128),
        (3, 3, 3),
        // More than the packet has.
        (5, 4, 4),
        (0, 40, 0),
    ] {
        let data = vec![0xAB; held];
        let blocks = written(&Section::default(), |writer, point| {
            writer.write(
                point,
                &Record {
                    length,
                    data: &data,
                    ..PACKET
                },
            );
        });
        assert_eq!(blocks[2].data(), &data[..kept], "{held} of {length}");
        assert_eq!(blocks[2].field(16), length);
    }
    assert_eq!(SNAP_LENGTH, 128);
}

#[test]
fn points_are_counted_separately() {
    let mut writer = Writer::new(Vec::new(), &Section::default());
    let points = ["up.enq", "up.drop"].map(|name| writer.add(&Interface::new(name)));
    for n in 0..5 {
        let at = Instant::from_millis(n);
        writer.write(points[0], &Record { at, ..PACKET });
        let verdict = Verdict::Dropped(DropReason::Overlimit);
        if n % 2 == 0 {
            let dropped = Record {
                at,
                verdict,
                ..PACKET
            };
            writer.write(points[1], &dropped);
        }
    }
    let blocks = blocks(&writer.finish().unwrap());
    // Without the name of a queue.
    assert_eq!(blocks[4].text(1), Some("dropped: overlimit"));
    let counts: Vec<_> = blocks[blocks.len() - 2..]
        .iter()
        .map(|block| (block.field(0), block.number(4), block.number(5)))
        .collect();
    assert_eq!(counts, [(0, Some(5), Some(0)), (1, Some(3), Some(3))]);
}

#[test]
fn hosts_have_names() {
    let blocks = written(&Section::default(), |writer, _| {
        writer.names([(Ipv4Addr::new(198, 18, 0, 1).into(), "sender")]);
    });
    let value = [&[198, 18, 0, 1][..], b"sender\0"].concat();
    assert_eq!(blocks[2].kind, 4);
    assert_eq!(blocks[2].options, [(1, value)]);
}

#[test]
fn long_text_is_cut_between_characters() {
    let text = "x".to_owned() + &"é".repeat(40_000);
    let section = Section {
        comment: Some(&text),
        ..Section::default()
    };
    let blocks = written(&section, |_, _| {});
    assert_eq!(blocks[0].text(1), Some(&text[..65_535]));
    let section = Section {
        comment: Some(&text[1..]),
        ..Section::default()
    };
    let blocks = written(&section, |_, _| {});
    assert_eq!(blocks[0].text(1).map(str::len), Some(65_534));
}

/// Fails in the block that exceeds its room.
struct Full {
    room: usize,
    failures: u32,
}

impl Write for Full {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.len() > self.room {
            self.failures += 1;
            assert_eq!(self.failures, 1, "nothing is written after an error");
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.room -= bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        assert_eq!(self.failures, 0, "nothing is flushed after an error");
        Ok(())
    }
}

#[test]
fn the_end_flushes_and_reports_its_error() {
    struct Stuck;
    impl Write for Stuck {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Err(io::ErrorKind::BrokenPipe.into())
        }
    }
    let end = Writer::new(Stuck, &Section::default()).finish();
    let kind = end.map(|_| ()).map_err(|error| error.kind());
    assert_eq!(kind, Err(io::ErrorKind::BrokenPipe));
}

#[test]
fn the_first_error_is_kept() {
    for room in [0, 60, 100, 200] {
        let mut writer = Writer::new(Full { room, failures: 0 }, &Section::default());
        let point = writer.add(&Interface::new("a"));
        for _ in 0..100 {
            writer.write(point, &PACKET);
        }
        let kind = writer.finish().map(|_| ()).map_err(|error| error.kind());
        assert_eq!(kind, Err(io::ErrorKind::StorageFull));
    }
}
