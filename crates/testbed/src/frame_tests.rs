use super::*;
use proptest::prelude::*;

const PAYLOAD: u8 = 0xab;

/// A frame as a kernel hands it over: so much payload to be cut into pieces of `piece` bytes.
pub(crate) fn frame(sequence: u32, payload: usize, piece: u16, flags: u8) -> Vec<u8> {
    let mut bytes = vec![0; VNET + 52];
    bytes[0] = NEEDS_CSUM;
    bytes[6..8].copy_from_slice(&20u16.to_ne_bytes());
    bytes[8..10].copy_from_slice(&16u16.to_ne_bytes());
    if payload > usize::from(piece) {
        bytes[1] = GSO_TCPV4;
        bytes[4..6].copy_from_slice(&piece.to_ne_bytes());
    }
    let ip = &mut bytes[VNET..];
    ip[0] = 0x45;
    ip[2..4].copy_from_slice(&((52 + payload) as u16).to_be_bytes());
    ip[4..6].copy_from_slice(&7u16.to_be_bytes());
    ip[6] = 0x40;
    ip[8] = 64;
    ip[9] = TCP;
    ip[12..20].copy_from_slice(&[10, 1, 0, 1, 10, 2, 0, 1]);
    ip[20 + 4..20 + 8].copy_from_slice(&sequence.to_be_bytes());
    ip[20 + 12] = 8 << 4;
    ip[20 + 13] = flags;
    bytes.extend((0..payload).map(|i| PAYLOAD.wrapping_add(i as u8)));
    bytes
}

fn pieces(bytes: &[u8]) -> Vec<Piece<'_>> {
    let frame = Frame::parse(bytes).expect("IPv4");
    let piece = |number| Piece { frame, bytes, number, marked: false };
    (0..frame.pieces()).map(piece).collect()
}

const ACK: u8 = 0x10;

fn head(pieces: &[Piece<'_>]) -> Head {
    let payload = pieces.iter().map(|piece| piece.frame.payload_of(piece.number)).sum();
    Head::of(&pieces[0], &pieces[pieces.len() - 1], payload)
}

fn payload<'a>(piece: &Piece<'a>) -> &'a [u8] {
    piece.payload_to(piece.number)
}

#[test]
fn a_frame_of_many_segments_is_cut_into_packets_of_the_segment_size() {
    let bytes = frame(1000, 3000, 1448, ACK | PSH);
    let sizes: Vec<u16> = pieces(&bytes).iter().map(|p| p.frame.size_of(p.number)).collect();
    assert_eq!(sizes, [1500, 1500, 156]);
}

#[test]
fn every_packet_has_headers_of_its_own() {
    let bytes = frame(1000, 3000, 1448, ACK | PSH | FIN);
    for (number, piece) in pieces(&bytes).into_iter().enumerate() {
        let head = head(&[piece]);
        let ip = &head.bytes()[VNET..];
        assert_eq!(u32_at(ip, 24), 1000 + 1448 * number as u32);
        assert_eq!(u16_at(ip, 4), 7 + number as u16, "identification");
        assert_eq!(usize::from(u16_at(ip, 2)), 52 + payload(&piece).len());
        assert_eq!(ip[33] & (PSH | FIN), if number == 2 { PSH | FIN } else { 0 });
        assert_eq!(fold(sum(&ip[..20])), 0xffff, "RFC 1071: a valid header adds up to all ones");
        assert_eq!(head.bytes()[1], 0, "nothing is left to cut");
    }
}

#[test]
fn a_packet_without_payload_is_one_packet() {
    let bytes = frame(1, 0, 1448, ACK);
    let all = pieces(&bytes);
    assert_eq!((all.len(), all[0].frame.size_of(0)), (1, 52));
    assert!(!all[0].continues_with(&all[0]));
}

#[test]
fn data_with_a_gap_or_another_acknowledgement_is_not_taken_for_one() {
    let bytes = frame(1000, 2896, 1448, ACK);
    let (first, mut later) = (pieces(&bytes), frame(1000 + 2896, 1448, 1448, ACK));
    assert!(first[0].continues_with(&first[1]));
    assert!(first[1].continues_with(&pieces(&later)[0]));
    assert!(!first[0].continues_with(&pieces(&later)[0]));
    later[VNET + 20 + 11] ^= 1;
    assert!(!first[1].continues_with(&pieces(&later)[0]));
}

#[test]
fn a_marked_packet_says_so_in_its_header_and_stays_alone() {
    let bytes = frame(1000, 2896, 1448, ACK);
    let all = pieces(&bytes);
    let marked = Piece { marked: true, ..all[1] };
    assert!(!all[0].continues_with(&marked));
    let head = head(&[marked]);
    assert_eq!(head.bytes()[VNET + 1] & 3, CE);
    assert_eq!(fold(sum(&head.bytes()[VNET..VNET + 20])), 0xffff);
}

#[test]
fn what_is_no_ip_is_not_a_frame() {
    assert_eq!(Frame::parse(&[0; 5]), None);
    assert_eq!(Frame::parse(&[0; 60]), None);
    let mut six = frame(0, 0, 0, 0);
    six[VNET] = 0x60;
    assert_eq!(Frame::parse(&six), None);
}

proptest! {
    #[test]
    fn pieces_put_together_are_what_was_cut(payload in 1usize..64_000, piece in 500u16..9000) {
        let bytes = frame(u32::MAX - 5000, payload, piece, ACK | PSH);
        let all = pieces(&bytes);
        prop_assert!(all.windows(2).all(|pair| pair[0].continues_with(&pair[1])));
        let head = head(&all);
        let mut together = head.bytes().to_vec();
        together.extend(all[0].payload_to(all[all.len() - 1].number));
        // The kernel leaves these for the network card: the header's length, and both checksums.
        for at in [2, 3, VNET + 10, VNET + 11, VNET + 36, VNET + 37] {
            together[at] = bytes[at];
        }
        prop_assert_eq!(together, bytes);
    }

    #[test]
    fn arbitrary_bytes_are_refused_or_cut_within_bounds(
        bytes in prop::collection::vec(any::<u8>(), 0..200)
    ) {
        if let Some(frame) = Frame::parse(&bytes) {
            let piece = |number| Piece { frame, bytes: &bytes, number, marked: true };
            let all: Vec<_> = (0..frame.pieces()).map(piece).collect();
            let payload: usize = all.iter().map(|piece| payload(piece).len()).sum();
            prop_assert_eq!(payload, frame.payload() as usize);
            all.iter().for_each(|piece| assert!(head(&[*piece]).bytes().len() >= VNET + 20));
        }
    }
}
