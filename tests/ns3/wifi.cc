// An access point and its stations in ns-3.37, 802.11n in the 5 GHz band with 20 MHz; README.md says
// what is set as in Sojourn and why. Prints the results as JSON.
//
// An MPDU of Sojourn has 16 B of CCMP, one of ns-3 has none. Payloads are 16 B longer here, and
// goodput counts them without these.
#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/mobility-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"
#include "ns3/wifi-module.h"

#include <cstdio>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

using namespace ns3;

namespace
{

constexpr uint32_t CCMP = 16;
constexpr uint32_t UDP_PAYLOAD = 1472;
constexpr uint32_t TCP_PAYLOAD = 1448;

struct Options
{
    std::string mcs = "7"; // of each station, such as "15,0"
    bool shortGuard = false;
    bool up = false;
    bool tcp = false;
    double loss = 0;
    uint32_t packets = 64;
    uint32_t queue = 500;
    bool bar = true;
    bool eifs = false;
    uint32_t ack = 2;
    uint32_t beacon = 500; // in units of 1.024 ms
    double seconds = 25;
    double warmup = 5;
    uint32_t run = 1;
};

Options
Parse(int argc, char* argv[])
{
    Options o;
    CommandLine cmd(__FILE__);
    cmd.AddValue("mcs", "MCS of each station, separated by commas", o.mcs);
    cmd.AddValue("short", "guard interval of 400 ns", o.shortGuard);
    cmd.AddValue("up", "data goes from the stations", o.up);
    cmd.AddValue("tcp", "a TCP flow per station instead of UDP", o.tcp);
    cmd.AddValue("loss", "share of data MPDUs that are lost", o.loss);
    cmd.AddValue("packets", "largest number of MPDUs in an A-MPDU; 1: no A-MPDU", o.packets);
    cmd.AddValue("queue", "packets in the queue of each device", o.queue);
    cmd.AddValue("bar", "ask for a missing block acknowledgement before sending again", o.bar);
    cmd.AddValue("eifs", "others detect frames that collide, and wait for EIFS after them", o.eifs);
    cmd.AddValue("ack", "segments per acknowledgement of TCP", o.ack);
    cmd.AddValue("beacon", "interval of beacons in units of 1.024 ms", o.beacon);
    cmd.AddValue("time", "simulated seconds", o.seconds);
    cmd.AddValue("warmup", "seconds that are not counted", o.warmup);
    cmd.AddValue("run", "number of the random numbers", o.run);
    cmd.Parse(argc, argv);
    return o;
}

/// A fixed MCS for data to each receiver, another for those that it does not know.
class FixedRates : public WifiRemoteStationManager
{
  public:
    static TypeId GetTypeId()
    {
        static TypeId tid = TypeId("FixedRates")
                                .SetParent<WifiRemoteStationManager>()
                                .AddConstructor<FixedRates>();
        return tid;
    }

    uint16_t guard = 800;
    std::string fallback = "HtMcs0";
    std::map<Mac48Address, std::string> modes;

  private:
    WifiRemoteStation* DoCreateStation() const override
    {
        return new WifiRemoteStation();
    }

    WifiTxVector DoGetDataTxVector(WifiRemoteStation* station, uint16_t) override
    {
        const auto found = modes.find(station->m_state->m_address);
        const WifiMode mode(found == modes.end() ? fallback : found->second);
        const uint8_t streams = 1 + mode.GetMcsValue() / 8;
        return WifiTxVector(mode, GetDefaultTxPowerLevel(), WIFI_PREAMBLE_HT_MF, guard, streams,
                            streams, 0, 20, GetAggregation(station));
    }

    WifiTxVector DoGetRtsTxVector(WifiRemoteStation*) override
    {
        return WifiTxVector(WifiMode("OfdmRate24Mbps"), GetDefaultTxPowerLevel(),
                            WIFI_PREAMBLE_LONG, 800, 1, 1, 0, 20, false);
    }

    void DoReportRtsFailed(WifiRemoteStation*) override {}
    void DoReportDataFailed(WifiRemoteStation*) override {}
    void DoReportRtsOk(WifiRemoteStation*, double, WifiMode, double) override {}
    void DoReportDataOk(WifiRemoteStation*, double, WifiMode, double, uint16_t, uint8_t) override {}
    void DoReportFinalRtsFailed(WifiRemoteStation*) override {}
    void DoReportFinalDataFailed(WifiRemoteStation*) override {}
    void DoReportRxOk(WifiRemoteStation*, double, WifiMode) override {}
};

NS_OBJECT_ENSURE_REGISTERED(FixedRates);

/// Loses a share of the MPDUs of data.
class LosesData : public ErrorModel
{
  public:
    static TypeId GetTypeId()
    {
        static TypeId tid = TypeId("LosesData").SetParent<ErrorModel>().AddConstructor<LosesData>();
        return tid;
    }

    double share = 0;

  private:
    bool DoCorrupt(Ptr<Packet> packet) override
    {
        // Frames of control and management are shorter.
        return packet->GetSize() > 500 && m_random->GetValue() < share;
    }

    void DoReset() override {}

    Ptr<UniformRandomVariable> m_random = CreateObject<UniformRandomVariable>();
};

NS_OBJECT_ENSURE_REGISTERED(LosesData);

/// Sends packets of `size` to `destination` at random times, at `rate` packets per second on average.
struct Poisson
{
    Ptr<Socket> socket;
    InetSocketAddress destination;
    uint32_t size;
    double rate;
    Ptr<ExponentialRandomVariable> gap = CreateObject<ExponentialRandomVariable>();

    void Send()
    {
        socket->SendTo(Create<Packet>(size), 0, destination);
        Simulator::Schedule(Seconds(gap->GetValue(1 / rate, 0)), &Poisson::Send, this);
    }
};

/// What the devices sent after the warm-up.
struct Air
{
    double warmup = 0;
    uint64_t aggregates = 0; // of data
    uint64_t mpdus = 0;
    std::map<std::string, uint64_t> others; // by type and rate
};

Air g_air;

void
Sends(WifiConstPsduMap psdus, WifiTxVector vector, double)
{
    if (Simulator::Now().GetSeconds() < g_air.warmup)
    {
        return;
    }
    const auto psdu = psdus.begin()->second;
    const WifiMacHeader& header = psdu->GetHeader(0);
    if (header.IsQosData())
    {
        g_air.aggregates++;
        g_air.mpdus += psdu->GetNMpdus();
        return;
    }
    std::ostringstream kind;
    kind << header.GetTypeString() << " " << vector.GetMode().GetUniqueName();
    g_air.others[kind.str()]++;
}

Ipv4Address
AddressOf(Ptr<Node> node, uint32_t interface)
{
    return node->GetObject<Ipv4>()->GetAddress(interface, 0).GetLocal();
}

} // namespace

int
main(int argc, char* argv[])
{
    const Options o = Parse(argc, argv);
    RngSeedManager::SetRun(o.run);
    std::vector<std::string> modes;
    std::istringstream list(o.mcs);
    for (std::string mcs; std::getline(list, mcs, ',');)
    {
        modes.push_back("HtMcs" + mcs);
    }

    const QueueSize queue(QueueSizeUnit::PACKETS, o.queue);
    Config::SetDefault("ns3::WifiMacQueue::MaxSize", QueueSizeValue(queue));
    Config::SetDefault("ns3::WifiMacQueue::MaxDelay", TimeValue(Seconds(1000)));
    Config::SetDefault("ns3::TcpL4Protocol::SocketType",
                       TypeIdValue(TypeId::LookupByName("ns3::TcpCubic")));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(TCP_PAYLOAD + CCMP));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(8u << 20));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(8u << 20));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(10));
    Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(o.ack));
    Config::SetDefault("ns3::QosTxop::UseExplicitBarAfterMissedBlockAck", BooleanValue(o.bar));
    Config::SetDefault("ns3::ArpCache::PendingQueueSize", UintegerValue(1000));

    // server -- access point ~~ stations
    NodeContainer wired;
    wired.Create(2);
    const Ptr<Node> server = wired.Get(0);
    const Ptr<Node> point = wired.Get(1);
    NodeContainer stations;
    stations.Create(modes.size());

    MobilityHelper mobility;
    mobility.SetMobilityModel("ns3::ConstantPositionMobilityModel");
    mobility.Install(point);
    mobility.Install(stations);

    YansWifiChannelHelper channel;
    channel.SetPropagationDelay("ns3::ConstantSpeedPropagationDelayModel");
    channel.AddPropagationLoss("ns3::FixedRssLossModel", "Rss", DoubleValue(-40));
    YansWifiPhyHelper phy;
    phy.SetChannel(channel.Create());
    if (o.eifs)
    {
        // By default, nobody detects the preamble of frames that collide with the same power.
        phy.DisablePreambleDetectionModel();
    }
    phy.Set("ChannelSettings", StringValue("{36, 20, BAND_5GHZ, 0}"));
    phy.Set("Antennas", UintegerValue(2));
    phy.Set("MaxSupportedTxSpatialStreams", UintegerValue(2));
    phy.Set("MaxSupportedRxSpatialStreams", UintegerValue(2));

    WifiHelper wifi;
    wifi.SetStandard(WIFI_STANDARD_80211n);
    wifi.SetRemoteStationManager("FixedRates");
    // The largest A-MPDU in bytes limits the number of MPDUs: one has 1,554 B, padded to 1,556, and
    // a delimiter of 4 B.
    const uint32_t bytes = o.packets == 1 ? 0 : std::min(65535u, o.packets * 1560);
    const Time interval = MicroSeconds(1024 * o.beacon);
    WifiMacHelper mac;
    const Ssid ssid("ns3");
    mac.SetType("ns3::ApWifiMac", "Ssid", SsidValue(ssid), "BE_MaxAmpduSize", UintegerValue(bytes),
                "BeaconInterval", TimeValue(interval), "EnableBeaconJitter", BooleanValue(false));
    NetDeviceContainer devices = wifi.Install(phy, mac, point);
    mac.SetType("ns3::StaWifiMac", "Ssid", SsidValue(ssid), "BE_MaxAmpduSize", UintegerValue(bytes),
                "MaxMissedBeacons", UintegerValue(1000));
    devices.Add(wifi.Install(phy, mac, stations));

    const auto deviceOf = [&](uint32_t n) { return DynamicCast<WifiNetDevice>(devices.Get(n)); };
    for (uint32_t n = 0; n < devices.GetN(); n++)
    {
        const auto rates = DynamicCast<FixedRates>(deviceOf(n)->GetRemoteStationManager());
        deviceOf(n)->GetHtConfiguration()->SetShortGuardIntervalSupported(o.shortGuard);
        rates->guard = o.shortGuard ? 400 : 800;
        if (n > 0)
        {
            rates->fallback = modes[n - 1];
        }
        for (uint32_t i = 0; n == 0 && i < modes.size(); i++)
        {
            rates->modes[deviceOf(i + 1)->GetMac()->GetAddress()] = modes[i];
        }
        const auto loses = CreateObject<LosesData>();
        loses->share = o.loss;
        deviceOf(n)->GetPhy()->SetPostReceptionErrorModel(loses);
        deviceOf(n)->GetPhy()->TraceConnectWithoutContext("PhyTxPsduBegin", MakeCallback(&Sends));
    }
    g_air.warmup = o.warmup;

    PointToPointHelper wire;
    wire.SetDeviceAttribute("DataRate", StringValue("10Gbps"));
    wire.SetDeviceAttribute("Mtu", UintegerValue(2000));
    wire.SetChannelAttribute("Delay", StringValue("1ms"));
    wire.SetQueue("ns3::DropTailQueue", "MaxSize", StringValue("100000p"));
    NetDeviceContainer line = wire.Install(wired);

    InternetStackHelper internet;
    Ipv4StaticRoutingHelper routing;
    internet.SetRoutingHelper(routing);
    internet.SetIpv6StackInstall(false);
    internet.Install(wired);
    internet.Install(stations);
    Ipv4AddressHelper address("10.1.0.0", "255.255.255.0");
    address.Assign(line);
    address.SetBase("10.2.0.0", "255.255.255.0");
    address.Assign(devices);
    // Packets wait in the queue of the device only.
    TrafficControlHelper none;
    none.Uninstall(line);
    none.Uninstall(devices);
    const auto route = [&](Ptr<Node> node, Ipv4Address gateway) {
        routing.GetStaticRouting(node->GetObject<Ipv4>())->SetDefaultRoute(gateway, 1);
    };
    route(server, AddressOf(point, 1));
    for (uint32_t n = 0; n < stations.GetN(); n++)
    {
        route(stations.Get(n), AddressOf(point, 2));
    }

    const uint32_t payload = (o.tcp ? TCP_PAYLOAD : UDP_PAYLOAD) + CCMP;
    const std::string factory = o.tcp ? "ns3::TcpSocketFactory" : "ns3::UdpSocketFactory";
    std::vector<Ptr<PacketSink>> sinks;
    std::vector<std::unique_ptr<Poisson>> streams;
    for (uint32_t n = 0; n < stations.GetN(); n++)
    {
        const Ptr<Node> from = o.up ? stations.Get(n) : server;
        const Ptr<Node> to = o.up ? server : stations.Get(n);
        const uint16_t port = 5000 + n;
        PacketSinkHelper sink(factory, InetSocketAddress(Ipv4Address::GetAny(), port));
        ApplicationContainer sinking = sink.Install(to);
        sinks.push_back(DynamicCast<PacketSink>(sinking.Get(0)));
        const InetSocketAddress destination(AddressOf(to, 1), port);
        // Stations have associated by then: each beacon is an occasion.
        const Time start = Seconds(2);
        if (o.tcp)
        {
            BulkSendHelper bulk(factory, destination);
            bulk.SetAttribute("SendSize", UintegerValue(payload));
            bulk.Install(from).Start(start);
        }
        else
        {
            const double rate = 150e6 / 8 / UDP_PAYLOAD;
            const auto socket = Socket::CreateSocket(from, UdpSocketFactory::GetTypeId());
            streams.push_back(std::unique_ptr<Poisson>(
                new Poisson{socket, destination, payload, rate}));
            Simulator::Schedule(start, &Poisson::Send, streams.back().get());
        }
    }

    std::vector<uint64_t> before(sinks.size());
    Simulator::Schedule(Seconds(o.warmup), [&]() {
        for (uint32_t n = 0; n < sinks.size(); n++)
        {
            before[n] = sinks[n]->GetTotalRx();
        }
    });
    Simulator::Stop(Seconds(o.seconds));
    Simulator::Run();

    std::printf("{\"goodput_mbit_per_s\": [");
    for (uint32_t n = 0; n < sinks.size(); n++)
    {
        const double received = sinks[n]->GetTotalRx() - before[n];
        const double counted = received * (payload - CCMP) / payload;
        std::printf("%s%.3f", n ? ", " : "", counted * 8e-6 / (o.seconds - o.warmup));
    }
    std::printf("], \"mpdus_per_aggregate\": %.3f, \"sent\": {\"data\": %lu",
                double(g_air.mpdus) / g_air.aggregates, (unsigned long)g_air.aggregates);
    for (const auto& [kind, number] : g_air.others)
    {
        std::printf(", \"%s\": %lu", kind.c_str(), (unsigned long)number);
    }
    std::printf("}}\n");
    return 0;
}
