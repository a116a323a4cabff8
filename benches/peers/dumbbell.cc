// The dumbbells S1, S2, S3 and S5 for ns-3.37: long TCP flows, and a UDP stream if asked, over one
// bottleneck.
//
//   senders --(access)-- R1 --(bottleneck)-- R2 --(access)-- receivers
//
// ns-3 at its best: whatever costs time and is not asked for is left out (flow monitor, traces,
// queue discs on access links, dynamic routes), and flows of one RTT share a pair of hosts.
// Data packets are 1500 B of IP: 1448 B of payload, 12 B of timestamps, 40 B of headers.
#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

#include <unistd.h>

#include <cstdio>
#include <string>
#include <vector>

using namespace ns3;

namespace
{

struct Options
{
    std::string rate = "100Mbps";
    std::string access = "1Gbps";
    std::string qdisc = "CoDel";
    std::string limit = "1000p";
    std::string cbr;
    uint32_t flows = 1;
    double rttMin = 100; // ms
    double rttMax = 100;
    uint32_t rttClasses = 1;
    double seconds = 60;
    uint32_t buffer = 4u << 20; // TCP's, each way, in bytes
};

Options
Parse(int argc, char* argv[])
{
    Options o;
    CommandLine cmd(__FILE__);
    cmd.AddValue("rate", "of the bottleneck", o.rate);
    cmd.AddValue("access", "rate of the access links", o.access);
    cmd.AddValue("qdisc", "ns3::<this>QueueDisc", o.qdisc);
    cmd.AddValue("limit", "of the queue", o.limit);
    cmd.AddValue("cbr", "rate of a UDP stream", o.cbr);
    cmd.AddValue("flows", "long TCP flows", o.flows);
    cmd.AddValue("rttMin", "smallest base RTT, ms", o.rttMin);
    cmd.AddValue("rttMax", "largest base RTT, ms", o.rttMax);
    cmd.AddValue("rttClasses", "number of different RTTs", o.rttClasses);
    cmd.AddValue("time", "simulated seconds", o.seconds);
    cmd.AddValue("buffer", "of TCP, bytes", o.buffer);
    cmd.Parse(argc, argv);
    return o;
}

void
SetDefaults(const Options& o)
{
    Config::SetDefault("ns3::TcpL4Protocol::SocketType",
                       TypeIdValue(TypeId::LookupByName("ns3::TcpCubic")));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(1448));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(o.buffer));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(o.buffer));
    Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(2));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(10));
    Config::SetDefault("ns3::TcpSocketBase::Sack", BooleanValue(true));
    Config::SetDefault("ns3::TcpCubic::HyStart", BooleanValue(true));
}

Time
Milliseconds(double ms)
{
    return MicroSeconds(static_cast<uint64_t>(ms * 1000));
}

} // namespace

int
main(int argc, char* argv[])
{
    const Options o = Parse(argc, argv);
    SetDefaults(o);
    ObjectFactory scheduler;
    scheduler.SetTypeId("ns3::MapScheduler");
    Simulator::SetScheduler(scheduler);

    NodeContainer routers;
    routers.Create(2);
    NodeContainer senders;
    senders.Create(o.rttClasses + (o.cbr.empty() ? 0 : 1));
    NodeContainer receivers;
    receivers.Create(senders.GetN());
    InternetStackHelper internet;
    Ipv4StaticRoutingHelper routing;
    internet.SetRoutingHelper(routing);
    internet.SetIpv6StackInstall(false);
    for (const NodeContainer& nodes : {routers, senders, receivers})
    {
        internet.Install(nodes);
    }

    // A quarter of the smallest RTT lies in the bottleneck, the rest before it.
    const double behind = 0.1;
    const double within = o.rttMin / 4;
    PointToPointHelper wire;
    wire.SetDeviceAttribute("DataRate", StringValue(o.rate));
    wire.SetDeviceAttribute("Mtu", UintegerValue(1500));
    wire.SetChannelAttribute("Delay", TimeValue(Milliseconds(within)));
    wire.SetQueue("ns3::DropTailQueue", "MaxSize", StringValue("1p"));
    NetDeviceContainer bottleneck = wire.Install(routers);

    const std::string disc = "ns3::" + o.qdisc + "QueueDisc";
    TrafficControlHelper control;
    control.SetRootQueueDisc(disc);
    Config::SetDefault(disc + "::MaxSize", QueueSizeValue(QueueSize(o.limit)));
    QueueDiscContainer queue = control.Install(bottleneck.Get(0));
    DynamicCast<PointToPointNetDevice>(bottleneck.Get(1))
        ->GetQueue()
        ->SetMaxSize(QueueSize("1000000p"));

    Ipv4AddressHelper address("10.255.0.0", "255.255.255.0");
    Ipv4InterfaceContainer between = address.Assign(bottleneck);
    // Assigning addresses installs FqCoDel wherever there is no disc; the way of the ACKs has none.
    TrafficControlHelper none;
    none.Uninstall(NetDeviceContainer(bottleneck.Get(1)));
    const auto routeBy = [&](Ptr<Node> node, Ipv4Address gateway) {
        routing.GetStaticRouting(node->GetObject<Ipv4>())->SetDefaultRoute(gateway, 1);
    };
    routeBy(routers.Get(0), between.GetAddress(1));
    routeBy(routers.Get(1), between.GetAddress(0));

    std::vector<Ipv4Address> destination;
    for (uint32_t i = 0; i < senders.GetN(); i++)
    {
        const double step = o.rttClasses == 1 ? 0 : (o.rttMax - o.rttMin) / (o.rttClasses - 1);
        const double rtt = i < o.rttClasses ? o.rttMin + step * i : o.rttMin;
        PointToPointHelper link;
        link.SetDeviceAttribute("DataRate", StringValue(o.access));
        link.SetQueue("ns3::DropTailQueue", "MaxSize", StringValue("1000000p"));
        link.SetChannelAttribute("Delay", TimeValue(Milliseconds(rtt / 2 - within - behind)));
        NetDeviceContainer left = link.Install(senders.Get(i), routers.Get(0));
        link.SetChannelAttribute("Delay", TimeValue(Milliseconds(behind)));
        NetDeviceContainer right = link.Install(routers.Get(1), receivers.Get(i));
        address.SetBase(("10.1." + std::to_string(i) + ".0").c_str(), "255.255.255.0");
        Ipv4InterfaceContainer onLeft = address.Assign(left);
        address.SetBase(("10.2." + std::to_string(i) + ".0").c_str(), "255.255.255.0");
        Ipv4InterfaceContainer onRight = address.Assign(right);
        none.Uninstall(left);
        none.Uninstall(right);
        routeBy(senders.Get(i), onLeft.GetAddress(1));
        routeBy(receivers.Get(i), onRight.GetAddress(0));
        destination.push_back(onRight.GetAddress(1));
    }

    Ptr<UniformRandomVariable> jitter = CreateObject<UniformRandomVariable>();
    for (uint32_t flow = 0; flow < o.flows; flow++)
    {
        const uint32_t pair = flow % o.rttClasses;
        const uint16_t port = 5000 + flow;
        PacketSinkHelper sink("ns3::TcpSocketFactory",
                              InetSocketAddress(Ipv4Address::GetAny(), port));
        sink.Install(receivers.Get(pair)).Start(Seconds(0));
        BulkSendHelper bulk("ns3::TcpSocketFactory", InetSocketAddress(destination[pair], port));
        bulk.SetAttribute("MaxBytes", UintegerValue(0));
        bulk.SetAttribute("SendSize", UintegerValue(1448));
        bulk.Install(senders.Get(pair))
            .Start(MilliSeconds(o.flows == 1 ? 0 : jitter->GetValue(0, 100)));
    }
    if (!o.cbr.empty())
    {
        const uint32_t pair = o.rttClasses;
        PacketSinkHelper sink("ns3::UdpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), 9));
        sink.Install(receivers.Get(pair)).Start(Seconds(0));
        OnOffHelper stream("ns3::UdpSocketFactory", InetSocketAddress(destination[pair], 9));
        stream.SetConstantRate(DataRate(o.cbr), 1472);
        stream.Install(senders.Get(pair)).Start(Seconds(0));
    }

    Simulator::Stop(Seconds(o.seconds));
    Simulator::Run();
    const QueueDisc::Stats stats = queue.Get(0)->GetStats();
    std::printf("delivered=%lu drops=%lu events=%lu\n",
                static_cast<unsigned long>(stats.nTotalSentPackets),
                static_cast<unsigned long>(stats.nTotalDroppedPackets),
                static_cast<unsigned long>(Simulator::GetEventCount()));
    std::fflush(stdout);
    // Simulator::Destroy() is left out: freeing millions of packets is no part of the work.
    _exit(0);
}
