//! Tests of the encoding of datagrams.

use super::*;
use sojourn_net::Rng;

fn draw_ack(rng: &mut Rng, most: usize, ecn: bool) -> Ack {
    let mut ack = Ack {
        delay_micros: u32::try_from(rng.below(1 << 20)).unwrap(),
        ce: ecn.then(|| u32::try_from(rng.below(1 << 30)).unwrap()),
        ..Ack::default()
    };
    let mut end = 3_000_000_000;
    for n in 0..=rng.below(most as u64) {
        // Only the first may be longer than 16 bits tell.
        let longest = if n == 0 { 1_000_000 } else { 0xFFFF };
        let start = end - 1 - u32::try_from(rng.below(longest)).unwrap();
        ack.push((start, end));
        end = start - 1 - u32::try_from(rng.below(0xFFFF)).unwrap();
    }
    ack
}

#[test]
fn application_packets_survive_as_large_as_they_may_be() {
    let mut rng = Rng::new(1);
    let mut full = 0;
    for _ in 0..10_000 {
        let mut content = Content {
            app: Some(App {
                pn: u32::try_from(rng.below(1 << 32)).unwrap(),
                early: rng.below(2) == 0,
                done: rng.below(2) == 0,
                ..App::default()
            }),
            close: rng.below(2) == 0,
            ..Content::default()
        };
        let ecn = rng.below(2) == 0;
        if rng.below(2) == 0 {
            let frames = usize::try_from(rng.below(3)).unwrap();
            let most = content.ranges(ecn, FRAME_WORDS * frames);
            let ack = most.map(|most| draw_ack(&mut rng, most, ecn));
            content.app.as_mut().unwrap().ack = ack;
        }
        while content.has_room_for_limit(0) && rng.below(2) > 0 {
            let stream = (rng.below(2) == 0).then(|| u16::try_from(rng.below(0xFFFF)).unwrap());
            content.app.as_mut().unwrap().push_limit(Limit {
                stream,
                is_blocked: rng.below(2) == 0,
                bytes: Limit::encodable(rng.next_u64() >> rng.below(64)),
            });
        }
        while content.has_room_for_frame() && rng.below(4) > 0 {
            content.app.as_mut().unwrap().push(Frame {
                id: u16::try_from(rng.below(1 << 16)).unwrap(),
                len: u16::try_from(rng.below(1 << 15)).unwrap(),
                fin: rng.below(2) == 0,
                offset: rng.next_u64(),
            });
        }
        full += u32::from(content.room() == 0);
        let datagram = content.encode(1_452, if ecn { Flags::ECT0 } else { Flags::NONE });
        let (words, payload, ect) = datagram.parts();
        assert_eq!(Datagram::from_parts(words, payload, ect), datagram);
        assert_eq!(datagram.content(), content);
        assert_eq!(datagram.app_number(), content.app.map(|app| app.pn));
        let app = content.app.unwrap();
        let largest = app.ack.map(|ack| ack.largest());
        assert_eq!(datagram.largest_acknowledged(), largest);
        assert_eq!(datagram.frame_count() as usize, app.frames().len());
        assert_eq!(datagram.is_eliciting(), app.is_eliciting());
    }
    assert!(full > 100, "no packet filled its words");
}

#[test]
fn a_packet_with_one_frame_is_written_as_any_other() {
    let frame = Frame {
        id: 9,
        len: 1_200,
        fin: true,
        offset: 1 << 40 | 5,
    };
    let mut ack = Ack::new(70, Some(3));
    ack.push((90, 100));
    ack.push((10, 20));
    for ect in [Flags::NONE, Flags::ECT0] {
        let mut content = Content {
            app: Some(App::new(7, false)),
            ..Content::default()
        };
        assert_eq!(content.ranges(true, 0), Some(most_ranges(true)));
        assert_eq!(content.ranges(false, 0), Some(most_ranges(false)));
        content.app.as_mut().unwrap().ack = Some(ack);
        let datagram = Datagram::of_ack(7, &ack, 60, ect);
        assert_eq!(datagram, content.encode(60, ect));
        let mut app = App::new(7, false);
        app.push(frame);
        content.app = Some(app);
        let datagram = Datagram::of_frame(7, &frame, 1_240, ect);
        assert_eq!(datagram, content.encode(1_240, ect));
    }
}

#[test]
fn handshake_packets_share_a_datagram_with_data() {
    let ack = |largest, below: &[u32]| {
        let bitmap = below.iter().map(|pn| 1_u32 << (largest - 1 - pn)).sum();
        Some(unpack_bitmap(largest, bitmap))
    };
    let mut content = Content {
        crypto_packets: [
            Some(CryptoPacket {
                pn: 7,
                ack: ack(40, &[39, 38, 20, 8]),
                crypto: Some((0, 300)),
                ping: false,
            }),
            Some(CryptoPacket {
                pn: 65_000,
                ack: ack(0, &[]),
                crypto: None,
                ping: true,
            }),
        ],
        app: Some(App {
            early: true,
            ..App::default()
        }),
        close: false,
    };
    let ack = content.crypto_packets[0].unwrap().ack.unwrap();
    assert_eq!(ack.ranges(), [(38, 41), (20, 21), (8, 9)]);
    assert!(content.has_room_for_frame());
    content.app.as_mut().unwrap().push(Frame {
        id: 3,
        len: 400,
        fin: true,
        offset: 1 << 40,
    });
    assert!(!content.has_room_for_frame());
    let datagram = content.encode(1_200, Flags::NONE);
    assert_eq!(datagram.content(), content);
    assert!(datagram.is_long() && datagram.has_data());
}

#[test]
fn a_range_too_far_below_is_left_out_and_a_long_one_cut() {
    assert_eq!(encodable(100_000, (10, 20)), None);
    assert_eq!(encodable(100_000, (10, 90_000)), Some((24_465, 90_000)));
    assert_eq!(encodable(100_000, (80_000, 90_000)), Some((80_000, 90_000)));
}
