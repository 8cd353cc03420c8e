//! Chooses the thread that gets a datagram: a classic BPF program that the kernel runs over the
//! L2TP header.
//!
//! Control messages and link frames (RFC 1661: protocol numbers from 0x8000 on) go to the first
//! thread, which handles them. For packets, the program chooses the thread by session id, or lets the
//! kernel choose by flow. A datagram on the wrong thread is not lost: the thread passes on frames that
//! it does not handle.

use reactor::Instruction;

use crate::config::Steer;

// Classic BPF: `linux/bpf_common.h`.
const LOAD_HALF: u16 = 0x28;
const LOAD_BYTE: u16 = 0x30;
const LOAD_WORD_AT_X: u16 = 0x40;
const LOAD_HALF_AT_X: u16 = 0x48;
const LOAD_BYTE_AT_X: u16 = 0x50;
const SET_X: u16 = 0x01;
const AND: u16 = 0x54;
const MODULO: u16 = 0x94;
const IF_EQUAL: u16 = 0x15;
const IF_SET: u16 = 0x45;
const JUMP: u16 = 0x05;
const RETURN: u16 = 0x06;
const RETURN_A: u16 = 0x16;

/// No socket has this index, so the kernel chooses by flow.
const BY_FLOW: u32 = u32::MAX;

/// A jump target, resolved when the program is complete.
#[derive(Clone, Copy, PartialEq)]
enum To {
    Next,
    Edge,
    V3,
    Whole,
    /// Skips two instructions.
    Third,
}

/// The program for `threads` threads. `cookie` is the length of the cookies that we assign (RFC
/// 3931, section 4.1).
///
/// The first bytes of a frame are at another offset if an L2TPv2 header has sequence numbers or an
/// offset field, or an L2TPv3 header has a sublayer. Such L2TPv2 frames go to the first thread, such
/// L2TPv3 frames to the thread of their session.
pub(super) fn program(steer: Steer, threads: u32, cookie: u8) -> Vec<Instruction> {
    let mut code: Vec<(u16, To, To, u32)> = Vec::new();
    let mut labels: Vec<(To, usize)> = Vec::new();
    let next = To::Next;
    code.extend([
        (LOAD_HALF, next, next, 0),
        // T, or S or O (RFC 2661, section 3.1).
        (IF_SET, To::Edge, next, 0x8000 | 0x0a00),
        (AND, next, next, 0x000f),
        (IF_EQUAL, To::V3, next, 3),
        (IF_EQUAL, next, To::Edge, 2),
        // L: all later fields are two bytes further on.
        (LOAD_BYTE, next, next, 0),
        (SET_X, next, next, 2),
        (IF_SET, To::Whole, next, 0x40),
        (SET_X, next, next, 0),
    ]);
    labels.push((To::Whole, code.len()));
    let (frame_v2, frame_v3) = (6, 8 + u32::from(cookie));
    code.extend(frame(frame_v2));
    code.extend(choice(steer, threads, LOAD_HALF_AT_X, 4));
    labels.push((To::V3, code.len()));
    code.push((SET_X, next, next, 0));
    code.extend(frame(frame_v3));
    code.extend(choice(steer, threads, LOAD_WORD_AT_X, 4));
    labels.push((To::Edge, code.len()));
    code.push((RETURN, next, next, 0));
    let place = |to: To, at: usize| match to {
        To::Next => 0,
        To::Third => 2,
        To::Edge | To::V3 | To::Whole => {
            let label = labels.iter().find(|(label, _)| *label == to);
            let (_, place) = label.expect("every label has its place");
            (place - at - 1) as u8
        }
    };
    let resolve = |(at, &(code, yes, no, k)): (usize, &(u16, To, To, u32))| {
        (code, place(yes, at), place(no, at), k)
    };
    code.iter().enumerate().map(resolve).collect()
}

/// The first byte of a frame's protocol number, with or without address and control fields in front
/// (RFC 1661, section 6.6). From 0x80 on the frame belongs to the link.
fn frame(at: u32) -> [(u16, To, To, u32); 6] {
    let next = To::Next;
    [
        (LOAD_HALF_AT_X, next, next, at),
        (IF_EQUAL, next, To::Third, 0xff03),
        (LOAD_BYTE_AT_X, next, next, at + 2),
        (JUMP, next, next, 1),
        (LOAD_BYTE_AT_X, next, next, at),
        (IF_SET, To::Edge, next, 0x80),
    ]
}

fn choice(steer: Steer, threads: u32, load: u16, at: u32) -> Vec<(u16, To, To, u32)> {
    let next = To::Next;
    match steer {
        Steer::Session => vec![
            (load, next, next, at),
            (MODULO, next, next, threads),
            (RETURN_A, next, next, 0),
        ],
        Steer::Peer => vec![(RETURN, next, next, BY_FLOW)],
    }
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket as Plain;

    use reactor::{RecvBatch, UdpOptions, UdpSocket};

    use super::*;

    /// Which of four sockets the kernel gives each datagram to.
    fn places<const N: usize>(
        program: &[Instruction],
        datagrams: [&[u8]; N],
    ) -> [Option<usize>; N] {
        let options = UdpOptions {
            reuse_port: true,
            ..UdpOptions::default()
        };
        let first = UdpSocket::bind("127.0.0.1:0".parse().unwrap(), &options).unwrap();
        let address = first.local_addr();
        let mut sockets = vec![first];
        sockets.extend((1..4).map(|_| UdpSocket::bind(address, &options).unwrap()));
        sockets[0].steer(program).unwrap();
        let sender = Plain::bind("127.0.0.1:0").unwrap();
        let mut batch = RecvBatch::new(1);
        datagrams.map(|datagram| {
            sender.send_to(datagram, address).unwrap();
            sockets.iter_mut().position(|socket| {
                socket.recv(&mut batch).unwrap();
                batch.iter().any(|received| received.bytes == datagram)
            })
        })
    }

    const IPV4: [u8; 4] = [0xff, 0x03, 0x00, 0x21];

    fn v2(flags: u8, session: u16, frame: &[u8]) -> Vec<u8> {
        let length: &[u8] = if flags & 0x40 > 0 { &[0, 99] } else { &[] };
        let [high, low] = session.to_be_bytes();
        [&[flags, 2], length, &[0, 9, high, low], frame].concat()
    }

    fn v3(session: u32, cookie: &[u8], frame: &[u8]) -> Vec<u8> {
        [&[0, 3, 0, 0], &session.to_be_bytes()[..], cookie, frame].concat()
    }

    #[test]
    fn packets_go_by_their_session() {
        let program = program(Steer::Session, 4, 0);
        for (flags, session) in [(0, 5), (0, 6), (0x40, 7), (0x40, 0xff08), (0, 9)] {
            let datagram = v2(flags, session, &IPV4);
            let place = usize::from(session % 4);
            assert_eq!(
                places(&program, [&datagram]),
                [Some(place)],
                "{flags:x} {session}"
            );
        }
        for frame in [&IPV4[..], &[0x21, 0x45], &[0x00, 0x57], &[0xff, 0x03, 0x57]] {
            let datagram = v3(0xabcd_0007, &[], frame);
            assert_eq!(places(&program, [&datagram]), [Some(3)]);
        }
    }

    #[test]
    fn control_messages_and_frames_of_links_go_to_the_first() {
        let link = |head: &[u8]| [head, &[0xc0, 0x21, 1, 1, 0, 4]].concat();
        let with_address = link(&[0xff, 0x03]);
        let without = link(&[]);
        let program = program(Steer::Session, 4, 8);
        let cookie = [0x77; 8];
        let all = [
            v2(0xc8, 3, &[]),
            v2(0x08, 3, &IPV4),
            v2(0x02, 3, &IPV4),
            v2(0, 3, &with_address),
            v2(0x40, 3, &without),
            v3(3, &cookie, &with_address),
            v3(3, &cookie, &without),
            vec![0xc8, 3, 0, 20],
            vec![0],
            vec![0, 5, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10],
        ];
        for datagram in &all {
            assert_eq!(places(&program, [datagram]), [Some(0)], "{datagram:x?}");
        }
        assert_eq!(places(&program, [&v3(7, &cookie, &IPV4)]), [Some(3)]);
    }

    #[test]
    fn packets_of_one_flow_stay_together_where_peers_decide() {
        let program = program(Steer::Peer, 4, 0);
        let [a, b, c, control] = places(
            &program,
            [
                &v2(0, 1, &IPV4),
                &v2(0, 2, &IPV4),
                &v3(3, &[], &IPV4),
                &v2(0xc8, 1, &[]),
            ],
        );
        assert!(a.is_some() && a == b && b == c, "{a:?} {b:?} {c:?}");
        assert_eq!(control, Some(0));
    }
}
