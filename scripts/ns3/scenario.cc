// Flows through one bottleneck in ns-3: the paths of F-BBRv2's paper and of docs/explanation/ns3.md.
//
// Every flow has an access link of its own to one router, and all of them share the bottleneck from
// there to the receivers' node. Prints one JSON object; --series=FILE writes samples of every flow.
// Any attribute of ns-3 can be set as well: --ns3::TcpSocket::SegmentSize=536.

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

#include <ctime>
#include <deque>
#include <fstream>
#include <iostream>
#include <sstream>

using namespace ns3;

namespace
{

struct Settings
{
    std::string cc = "TcpBbr"; // one a flow, separated by commas
    std::string starts = "0";  // s, one a flow; the last one holds for all that follow
    double rate = 50e6;        // of the bottleneck, bit/s
    double access = 50e6;      // of the access links, bit/s
    double rtt = 0.040;        // of the path without queues, s
    double queue = 4;          // of the bottleneck, BDP
    uint32_t packets = 0;      // of the bottleneck, instead of `queue`, if above 0
    double loss = 0;           // probability, packets of the bottleneck's forward direction
    double duration = 150;     // s
    double sample = 0.1;       // s
    uint32_t accessQueue = 1000; // packets
    std::string disc = "none"; // queueing discipline above the devices, as ns-3 names it
    std::string series;
};

struct Flow
{
    std::string cc;
    double start = 0;
    Ptr<BulkSendApplication> source;
    Ptr<PacketSink> sink;
    uint32_t segment = 1;
    uint64_t sent = 0;
    uint64_t retransmitted = 0;
    uint64_t timeouts = 0;
    SequenceNumber32 beyond{0}; // the highest sequence number sent, plus one
    uint32_t window = 0;
    uint32_t threshold = 0;
    uint32_t inFlight = 0;
    double rtt = 0; // smoothed, s
    double rttSum = 0;
    uint64_t samples = 0;
};

std::vector<std::string>
Split(const std::string& text)
{
    std::vector<std::string> parts;
    std::istringstream stream(text);
    for (std::string part; std::getline(stream, part, ',');)
    {
        parts.push_back(part);
    }
    return parts;
}

Settings
Parse(int argc, char* argv[])
{
    // What the paper leaves unsaid, as dumbbell's stack "ns-3" has it; all else is ns-3's default.
    // The default buffers, 131,072 bytes, would end a flow at 26 Mbit/s.
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(1448));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(10));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(1 << 23));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(1 << 23));
    Settings set;
    CommandLine line(__FILE__);
    line.AddValue("cc", "congestion controls, e.g. TcpBbr,TcpCubic", set.cc);
    line.AddValue("starts", "when the flows start, s", set.starts);
    line.AddValue("rate", "bottleneck, bit/s", set.rate);
    line.AddValue("access", "access links, bit/s", set.access);
    line.AddValue("rtt", "round-trip time without queues, s", set.rtt);
    line.AddValue("queue", "bottleneck's queue, BDP", set.queue);
    line.AddValue("packets", "bottleneck's queue, packets", set.packets);
    line.AddValue("loss", "probability that the bottleneck loses a packet", set.loss);
    line.AddValue("duration", "s", set.duration);
    line.AddValue("sample", "s", set.sample);
    line.AddValue("accessQueue", "queue of the access links, packets", set.accessQueue);
    line.AddValue("disc", "queueing discipline, e.g. FqCoDelQueueDisc", set.disc);
    line.AddValue("series", "file of the samples", set.series);
    line.Parse(argc, argv);
    return set;
}

PointToPointHelper
Link(double rate, double delay, QueueSize queue)
{
    PointToPointHelper link;
    link.SetDeviceAttribute("DataRate", DataRateValue(DataRate(static_cast<uint64_t>(rate))));
    link.SetChannelAttribute("Delay", TimeValue(Seconds(delay)));
    link.SetQueue("ns3::DropTailQueue<Packet>", "MaxSize", QueueSizeValue(queue));
    return link;
}

void
Sent(Flow* flow, Ptr<const Packet> packet, const TcpHeader& header, Ptr<const TcpSocketBase>)
{
    if (packet->GetSize() == 0)
    {
        return;
    }
    const SequenceNumber32 end = header.GetSequenceNumber() + packet->GetSize();
    ++flow->sent;
    flow->retransmitted += flow->sent > 1 && end <= flow->beyond;
    flow->beyond = flow->sent > 1 ? std::max(flow->beyond, end) : end;
}

void
Watch(Flow* flow)
{
    using Number = Callback<void, uint32_t, uint32_t>;
    using State = TcpSocketState::TcpCongState_t;
    const Ptr<Socket> socket = flow->source->GetSocket();
    UintegerValue segment;
    socket->GetAttribute("SegmentSize", segment);
    flow->segment = segment.Get();
    socket->TraceConnectWithoutContext("Tx", MakeBoundCallback(&Sent, flow));
    socket->TraceConnectWithoutContext(
        "CongestionWindow",
        Number([flow](uint32_t, uint32_t now) { flow->window = now; }));
    socket->TraceConnectWithoutContext(
        "SlowStartThreshold",
        Number([flow](uint32_t, uint32_t now) { flow->threshold = now; }));
    socket->TraceConnectWithoutContext(
        "BytesInFlight",
        Number([flow](uint32_t, uint32_t now) { flow->inFlight = now; }));
    socket->TraceConnectWithoutContext("RTT", Callback<void, Time, Time>([flow](Time, Time now) {
                                           flow->rtt = now.GetSeconds();
                                       }));
    socket->TraceConnectWithoutContext("CongState",
                                       Callback<void, State, State>([flow](State, State now) {
                                           flow->timeouts += now == TcpSocketState::CA_LOSS;
                                       }));
}

void
Sample(std::vector<Flow>* flows, std::ofstream* file, Time interval)
{
    for (size_t i = 0; i < flows->size(); ++i)
    {
        Flow& flow = flows->at(i);
        const double segment = flow.segment;
        flow.rttSum += flow.rtt;
        flow.samples += flow.rtt > 0;
        if (file->is_open())
        {
            *file << i << ',' << flow.cc << ',' << Simulator::Now().GetSeconds() << ','
                  << flow.window / segment << ',' << flow.threshold / segment << ',' << flow.rtt
                  << ',' << flow.inFlight / segment << ',' << flow.sink->GetTotalRx() << ','
                  << flow.retransmitted << '\n';
        }
    }
    Simulator::Schedule(interval, &Sample, flows, file, interval);
}

/// How long packets are in the bottleneck's queue: it is first in, first out.
struct Waiting
{
    std::deque<double> since; // s
    double sum = 0;           // s
    uint64_t packets = 0;
};

void
Meter(Ptr<NetDevice> device, Waiting* waiting)
{
    using Passed = Callback<void, Ptr<const Packet>>;
    const auto queue = DynamicCast<PointToPointNetDevice>(device)->GetQueue();
    queue->TraceConnectWithoutContext("Enqueue", Passed([waiting](Ptr<const Packet>) {
        waiting->since.push_back(Simulator::Now().GetSeconds());
    }));
    queue->TraceConnectWithoutContext("Dequeue", Passed([waiting](Ptr<const Packet>) {
        waiting->sum += Simulator::Now().GetSeconds() - waiting->since.front();
        waiting->since.pop_front();
        ++waiting->packets;
    }));
}

/// The nodes, links and flows of a scenario.
std::vector<Flow>
Build(const Settings& set, Waiting* waiting)
{
    const std::vector<std::string> names = Split(set.cc);
    const std::vector<std::string> starts = Split(set.starts);
    const QueueSize queue = set.packets
        ? QueueSize(QueueSizeUnit::PACKETS, set.packets)
        : QueueSize(QueueSizeUnit::BYTES, set.queue * set.rate * set.rtt / 8);
    const QueueSize device(QueueSizeUnit::PACKETS, 100);
    const bool none = set.disc == "none";

    NodeContainer senders(names.size());
    NodeContainer middle(2); // the router and the receivers' node
    InternetStackHelper().Install(NodeContainer(senders, middle));
    NetDeviceContainer trunk =
        Link(set.rate, set.rtt * 3 / 8, none ? queue : device).Install(middle);
    Meter(trunk.Get(0), waiting);
    if (set.loss > 0)
    {
        auto model = CreateObject<RateErrorModel>();
        model->SetUnit(RateErrorModel::ERROR_UNIT_PACKET);
        model->SetRate(set.loss);
        trunk.Get(1)->SetAttribute("ReceiveErrorModel", PointerValue(model));
    }
    if (!none)
    {
        TrafficControlHelper control;
        control.SetRootQueueDisc("ns3::" + set.disc);
        control.Install(trunk);
        if (set.disc != "FqCoDelQueueDisc")
        {
            trunk.Get(0)->GetNode()->GetObject<TrafficControlLayer>()
                ->GetRootQueueDiscOnDevice(trunk.Get(0))->SetMaxSize(queue);
        }
    }
    Ipv4AddressHelper addresses("10.0.0.0", "255.255.255.0");
    const Ipv4Address receiver = addresses.Assign(trunk).GetAddress(1);
    if (none)
    {
        TrafficControlHelper().Uninstall(trunk);
    }

    std::vector<Flow> flows(names.size());
    for (size_t i = 0; i < flows.size(); ++i)
    {
        Flow& flow = flows[i];
        const Ptr<Node> sender = senders.Get(i);
        const QueueSize limit(QueueSizeUnit::PACKETS, set.accessQueue);
        NetDeviceContainer edge =
            Link(set.access, set.rtt / 8, limit).Install(sender, middle.Get(0));
        addresses.NewNetwork();
        addresses.Assign(edge);
        if (none)
        {
            TrafficControlHelper().Uninstall(edge);
        }
        flow.cc = names[i];
        flow.start = std::stod(starts[std::min(i, starts.size() - 1)]);
        sender->GetObject<TcpL4Protocol>()->SetAttribute(
            "SocketType",
            TypeIdValue(TypeId::LookupByName("ns3::" + flow.cc)));
        const uint16_t port = 5000 + i;
        PacketSinkHelper sink("ns3::TcpSocketFactory",
                              InetSocketAddress(Ipv4Address::GetAny(), port));
        flow.sink = DynamicCast<PacketSink>(sink.Install(middle.Get(1)).Get(0));
        BulkSendHelper bulk("ns3::TcpSocketFactory", InetSocketAddress(receiver, port));
        ApplicationContainer source = bulk.Install(sender);
        source.Start(Seconds(flow.start));
        flow.source = DynamicCast<BulkSendApplication>(source.Get(0));
    }
    Ipv4GlobalRoutingHelper::PopulateRoutingTables();
    return flows;
}

void
Report(const Settings& set, const std::vector<Flow>& flows, const Waiting& waiting, double spent)
{
    std::cout << "{\"processor_time\": " << spent << ", \"delay\": "
              << 1e3 * waiting.sum / std::max<uint64_t>(waiting.packets, 1)
              << ", \"events\": " << Simulator::GetEventCount() << ", \"flows\": [";
    for (size_t i = 0; i < flows.size(); ++i)
    {
        const Flow& flow = flows[i];
        std::cout << (i ? ", " : "") << "{\"cc\": \"" << flow.cc << "\", \"throughput\": "
                  << flow.sink->GetTotalRx() * 8 / (set.duration - flow.start) / 1e6
                  << ", \"rtt\": " << 1e3 * flow.rttSum / std::max<uint64_t>(flow.samples, 1)
                  << ", \"sent\": " << flow.sent
                  << ", \"retransmitted\": " << flow.retransmitted
                  << ", \"timeouts\": " << flow.timeouts << "}";
    }
    std::cout << "]}\n";
}

} // namespace

int
main(int argc, char* argv[])
{
    const Settings set = Parse(argc, argv);
    Waiting waiting;
    std::vector<Flow> flows = Build(set, &waiting);
    for (Flow& flow : flows)
    {
        Simulator::Schedule(Seconds(flow.start) + NanoSeconds(1), &Watch, &flow);
    }
    std::ofstream series;
    if (!set.series.empty())
    {
        series.open(set.series);
        series << "flow,cc,t,cwnd,ssthresh,srtt,in_flight,received,retransmitted\n";
    }
    Simulator::Schedule(Seconds(set.sample), &Sample, &flows, &series, Seconds(set.sample));
    Simulator::Stop(Seconds(set.duration));
    const std::clock_t begin = std::clock();
    Simulator::Run();
    Report(set, flows, waiting, double(std::clock() - begin) / CLOCKS_PER_SEC);
    Simulator::Destroy();
    return 0;
}
