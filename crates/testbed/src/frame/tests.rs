use super::*;
use proptest::prelude::*;

const PAYLOAD: u8 = 0xab;

/// A TSO frame as a kernel hands it over, with `payload` bytes and a segment size of `gso_size`.
pub(crate) fn frame(sequence: u32, payload: usize, gso_size: u16, flags: u8) -> Vec<u8> {
    let mut bytes = vec![0; VNET_HEADER + 52];
    bytes[0] = VIRTIO_NET_HDR_F_NEEDS_CSUM;
    bytes[6..8].copy_from_slice(&20u16.to_ne_bytes());
    bytes[8..10].copy_from_slice(&16u16.to_ne_bytes());
    if payload > usize::from(gso_size) {
        bytes[1] = VIRTIO_NET_HDR_GSO_TCPV4;
        bytes[4..6].copy_from_slice(&gso_size.to_ne_bytes());
    }
    let ip = &mut bytes[VNET_HEADER..];
    ip[0] = 0x45;
    ip[2..4].copy_from_slice(&((52 + payload) as u16).to_be_bytes());
    ip[4..6].copy_from_slice(&7u16.to_be_bytes());
    ip[6] = 0x40;
    ip[8] = 64;
    ip[9] = IPPROTO_TCP;
    ip[12..20].copy_from_slice(&[10, 1, 0, 1, 10, 2, 0, 1]);
    ip[20 + 4..20 + 8].copy_from_slice(&sequence.to_be_bytes());
    ip[20 + 12] = 8 << 4;
    ip[20 + 13] = flags;
    bytes.extend((0..payload).map(|i| PAYLOAD.wrapping_add(i as u8)));
    bytes
}

fn segments(bytes: &[u8]) -> Vec<Segment<'_>> {
    let frame = Frame::parse(bytes).expect("IPv4");
    let segment = |number| Segment { frame, bytes, number, ce_marked: false };
    (0..frame.segments()).map(segment).collect()
}

const ACK: u8 = 0x10;

fn headers(segments: &[Segment<'_>]) -> Headers {
    let payload =
        segments.iter().map(|segment| segment.frame.segment_payload(segment.number)).sum();
    Headers::new(&segments[0], &segments[segments.len() - 1], payload)
}

fn payload<'a>(segment: &Segment<'a>) -> &'a [u8] {
    segment.payload_through(segment.number)
}

#[test]
fn a_gso_frame_is_split_into_segments_of_the_gso_size() {
    let bytes = frame(1000, 3000, 1448, ACK | PSH);
    let sizes: Vec<u16> = segments(&bytes).iter().map(|p| p.frame.segment_size(p.number)).collect();
    assert_eq!(sizes, [1500, 1500, 156]);
}

#[test]
fn each_segment_has_its_sequence_number_and_valid_headers() {
    let bytes = frame(1000, 3000, 1448, ACK | PSH | FIN);
    for (number, segment) in segments(&bytes).into_iter().enumerate() {
        let headers = headers(&[segment]);
        let ip = &headers.bytes()[VNET_HEADER..];
        assert_eq!(u32_at(ip, 24), 1000 + 1448 * number as u32);
        assert_eq!(u16_at(ip, 4), 7 + number as u16, "identification");
        assert_eq!(usize::from(u16_at(ip, 2)), 52 + payload(&segment).len());
        assert_eq!(ip[33] & (PSH | FIN), if number == 2 { PSH | FIN } else { 0 });
        assert_eq!(
            fold_carries(ones_complement_sum(&ip[..20])),
            0xffff,
            "RFC 1071: a valid header adds up to all ones"
        );
        assert_eq!(headers.bytes()[1], 0, "gso_type is none");
    }
}

#[test]
fn an_ack_without_payload_is_one_segment_and_never_coalesces() {
    let bytes = frame(1, 0, 1448, ACK);
    let all = segments(&bytes);
    assert_eq!((all.len(), all[0].frame.segment_size(0)), (1, 52));
    assert!(!all[0].coalesces_with(&all[0]));
}

#[test]
fn segments_with_a_gap_or_another_ack_number_do_not_coalesce() {
    let bytes = frame(1000, 2896, 1448, ACK);
    let (first, mut later) = (segments(&bytes), frame(1000 + 2896, 1448, 1448, ACK));
    assert!(first[0].coalesces_with(&first[1]));
    assert!(first[1].coalesces_with(&segments(&later)[0]));
    assert!(!first[0].coalesces_with(&segments(&later)[0]));
    later[VNET_HEADER + 20 + 11] ^= 1;
    assert!(!first[1].coalesces_with(&segments(&later)[0]));
}

#[test]
fn a_ce_marked_segment_has_the_mark_in_its_header_and_stays_alone() {
    let bytes = frame(1000, 2896, 1448, ACK);
    let all = segments(&bytes);
    let marked = Segment { ce_marked: true, ..all[1] };
    assert!(!all[0].coalesces_with(&marked));
    let headers = headers(&[marked]);
    assert_eq!(headers.bytes()[VNET_HEADER + 1] & 3, CE);
    assert_eq!(
        fold_carries(ones_complement_sum(&headers.bytes()[VNET_HEADER..VNET_HEADER + 20])),
        0xffff
    );
}

#[test]
fn a_tcp_header_below_its_minimum_is_refused() {
    let mut bytes = frame(0, 10, 1448, ACK);
    for data_offset in 0..5 {
        bytes[VNET_HEADER + 20 + 12] = data_offset << 4;
        assert_eq!(Frame::parse(&bytes), None, "data offset {data_offset}");
    }
}

#[test]
fn a_gso_frame_without_payload_is_one_segment() {
    let mut bytes = frame(0, 0, 1448, ACK);
    bytes[1] = VIRTIO_NET_HDR_GSO_TCPV4;
    bytes[4..6].copy_from_slice(&1448u16.to_ne_bytes());
    assert_eq!(segments(&bytes).len(), 1);
}

#[test]
fn only_ipv4_is_parsed() {
    assert_eq!(Frame::parse(&[0; 5]), None);
    assert_eq!(Frame::parse(&[0; 60]), None);
    let mut six = frame(0, 0, 0, 0);
    six[VNET_HEADER] = 0x60;
    assert_eq!(Frame::parse(&six), None);
}

proptest! {
    #[test]
    fn coalesced_segments_equal_the_frame_that_they_were_cut_from(payload in 1usize..64_000, gso_size in 500u16..9000) {
        let bytes = frame(u32::MAX - 5000, payload, gso_size, ACK | PSH);
        let all = segments(&bytes);
        prop_assert!(all.windows(2).all(|pair| pair[0].coalesces_with(&pair[1])));
        let headers = headers(&all);
        let mut together = headers.bytes().to_vec();
        together.extend(all[0].payload_through(all[all.len() - 1].number));
        // The kernel leaves the header length and both checksums to the network card.
        for at in [2, 3, VNET_HEADER + 10, VNET_HEADER + 11, VNET_HEADER + 36, VNET_HEADER + 37] {
            together[at] = bytes[at];
        }
        prop_assert_eq!(together, bytes);
    }

    #[test]
    fn arbitrary_bytes_are_refused_or_segmented_within_bounds(
        bytes in prop::collection::vec(any::<u8>(), 0..200)
    ) {
        if let Some(frame) = Frame::parse(&bytes) {
            let segment = |number| Segment { frame, bytes: &bytes, number, ce_marked: true };
            let all: Vec<_> = (0..frame.segments()).map(segment).collect();
            let payload: usize = all.iter().map(|segment| payload(segment).len()).sum();
            prop_assert_eq!(payload, frame.payload() as usize);
            all.iter().for_each(|segment| assert!(headers(&[*segment]).bytes().len() >= VNET_HEADER + 20));
        }
    }
}
