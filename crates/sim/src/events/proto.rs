//! The part of Perfetto's trace format that is written here, with the field numbers of
//! `protos/perfetto/trace/perfetto_trace.proto`.

use prost::Message;

/// The kind of a track event: a slice begins.
pub(super) const SLICE_BEGIN: i32 = 1;
/// The kind of a track event: the slice that began last on the track ends.
pub(super) const SLICE_END: i32 = 2;
/// The kind of a track event: something happens at one time.
pub(super) const INSTANT: i32 = 3;

/// `TracePacket`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct TracePacket {
    /// Time in nanoseconds.
    #[prost(uint64, optional, tag = "8")]
    pub timestamp: Option<u64>,
    #[prost(uint32, optional, tag = "10")]
    pub trusted_packet_sequence_id: Option<u32>,
    #[prost(message, optional, tag = "11")]
    pub track_event: Option<TrackEvent>,
    #[prost(message, optional, tag = "60")]
    pub track_descriptor: Option<TrackDescriptor>,
}

/// `TrackEvent`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct TrackEvent {
    #[prost(message, repeated, tag = "4")]
    pub debug_annotations: Vec<DebugAnnotation>,
    #[prost(int32, optional, tag = "9")]
    pub kind: Option<i32>,
    #[prost(uint64, optional, tag = "11")]
    pub track_uuid: Option<u64>,
    #[prost(string, optional, tag = "23")]
    pub name: Option<String>,
    #[prost(fixed64, repeated, packed = "false", tag = "47")]
    pub flow_ids: Vec<u64>,
}

/// `DebugAnnotation`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct DebugAnnotation {
    #[prost(uint64, optional, tag = "3")]
    pub uint_value: Option<u64>,
    #[prost(string, optional, tag = "6")]
    pub string_value: Option<String>,
    #[prost(string, optional, tag = "10")]
    pub name: Option<String>,
}

/// `TrackDescriptor`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct TrackDescriptor {
    #[prost(uint64, optional, tag = "1")]
    pub uuid: Option<u64>,
    #[prost(string, optional, tag = "2")]
    pub name: Option<String>,
    #[prost(uint64, optional, tag = "5")]
    pub parent_uuid: Option<u64>,
}

impl DebugAnnotation {
    pub(super) fn number(name: &str, value: u64) -> DebugAnnotation {
        DebugAnnotation { uint_value: Some(value), string_value: None, name: Some(name.to_string()) }
    }

    pub(super) fn text(name: &str, value: impl Into<String>) -> DebugAnnotation {
        DebugAnnotation { uint_value: None, string_value: Some(value.into()), name: Some(name.to_string()) }
    }
}

/// Appends a packet to `bytes`, as an entry of the message `Trace`.
pub(super) fn append(packet: &TracePacket, bytes: &mut Vec<u8>) {
    // Field 1, length-delimited.
    bytes.push(0x0a);
    packet.encode_length_delimited(bytes).expect("a vector grows");
}
