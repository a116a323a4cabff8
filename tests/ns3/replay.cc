/* Replays a test vector of the kernel on a queue disc of ns-3 and prints the first difference.
 *
 * replay TYPE [ATTRIBUTE=VALUE ...] < FILE, such as: replay ns3::CoDelQueueDisc UseEcn=true < codel_ecn.json
 * FqCoDelQueueDisc needs quantum=BYTES, which it otherwise takes from its device. */

#include <iostream>
#include <iterator>
#include <string>

#include "ns3/core-module.h"
#include "ns3/network-module.h"
#include "ns3/traffic-control-module.h"

#include "../vectors/readers/vectors.h"

using namespace ns3;

namespace {

/* A packet of a vector. Its size is that of the vector: with the Ethernet header, as in the kernel. */
class Item : public QueueDiscItem
{
  public:
    explicit Item(const struct packet &packet)
        : QueueDiscItem(Create<Packet>(packet.size), Address(), 0), m_packet(packet)
    {
    }

    void AddHeader() override
    {
    }

    bool Mark() override
    {
        if ((m_packet.tos & 3) == 0)
            return false;
        m_packet.tos |= 3;
        return true;
    }

    bool GetUint8Value(Uint8Values field, uint8_t &value) const override
    {
        if (field != IP_DSFIELD)
            return false;
        value = m_packet.tos;
        return true;
    }

    /* Another one for each flow: in the recorded cases, no two flows share a queue. */
    uint32_t Hash(uint32_t) const override
    {
        return m_packet.flow;
    }

    const struct packet &Get() const
    {
        return m_packet;
    }

  private:
    struct packet m_packet;
};

void AdvanceTo(uint64_t now)
{
    Simulator::Stop(NanoSeconds(now) - Simulator::Now());
    Simulator::Run();
}

void Enqueue(void *self, uint64_t now, const struct packet *packet)
{
    AdvanceTo(now);
    static_cast<QueueDisc *>(self)->Enqueue(Create<Item>(*packet));
}

int Dequeue(void *self, uint64_t now, struct packet *packet)
{
    AdvanceTo(now);
    Ptr<QueueDiscItem> item = static_cast<QueueDisc *>(self)->Dequeue();
    if (!item)
        return 0;
    *packet = DynamicCast<Item>(item)->Get();
    return 1;
}

} // namespace

int main(int arguments, char **argument)
{
    if (arguments < 2)
        return 2;
    ObjectFactory factory(argument[1]);
    uint32_t quantum = 0;
    for (int n = 2; n < arguments; n++) {
        std::string pair(argument[n]);
        size_t at = pair.find('=');
        if (pair.substr(0, at) == "quantum") /* not an attribute */
            quantum = std::stoul(pair.substr(at + 1));
        else
            factory.Set(pair.substr(0, at), StringValue(pair.substr(at + 1)));
    }
    Ptr<QueueDisc> disc = factory.Create<QueueDisc>();
    if (auto fair = DynamicCast<FqCoDelQueueDisc>(disc))
        fair->SetQuantum(quantum);
    disc->Initialize();
    std::string file((std::istreambuf_iterator<char>(std::cin)), std::istreambuf_iterator<char>());
    struct queue queue = {PeekPointer(disc), Enqueue, Dequeue};
    char difference[160];
    vectors_check(file.c_str(), &queue, difference);
    std::cout << difference << std::endl;
    return 0;
}
