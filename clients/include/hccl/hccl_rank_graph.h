// How the NPUs of a communicator are connected: layers of the network, from the server outwards, and the links between
// two ranks. Lists belong to the library; the next call of the same function by the thread may replace them.
// NOLINTBEGIN
#ifndef HCCLSIM_HCCL_RANK_GRAPH_H
#define HCCLSIM_HCCL_RANK_GRAPH_H

#include <netinet/in.h>

#include "hccl/hccl_types.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
  COMM_TOPO_RESERVED = -1,
  COMM_TOPO_CLOS = 0,
  COMM_TOPO_1DMESH = 1,
  COMM_TOPO_910_93 = 2,
  COMM_TOPO_310P = 3,
  COMM_TOPO_A2AXSERVER = 4,
  COMM_TOPO_CUSTOM = 5
} CommTopo;

typedef enum {
  COMM_PROTOCOL_RESERVED = -1,
  COMM_PROTOCOL_HCCS = 0,
  COMM_PROTOCOL_ROCE = 1,
  COMM_PROTOCOL_PCIE = 2,
  COMM_PROTOCOL_SIO = 3,
  COMM_PROTOCOL_UBC_CTP = 4,
  COMM_PROTOCOL_UBC_TP = 5,
  COMM_PROTOCOL_UB_MEM = 6,
  COMM_PROTOCOL_UBOE = 7
} CommProtocol;

typedef enum {
  COMM_ADDR_TYPE_RESERVED = -1,
  COMM_ADDR_TYPE_IP_V4 = 0,
  COMM_ADDR_TYPE_IP_V6 = 1,
  COMM_ADDR_TYPE_ID = 2,
  COMM_ADDR_TYPE_EID = 3
} CommAddrType;

typedef enum {
  ENDPOINT_LOC_TYPE_RESERVED = -1,
  ENDPOINT_LOC_TYPE_DEVICE = 0,
  ENDPOINT_LOC_TYPE_HOST = 1
} EndpointLocType;

typedef struct {
  CommAddrType type;
  __extension__ union {
    uint8_t raws[36];
    struct in_addr addr;
    struct in6_addr addr6;
    uint32_t id;
    uint8_t eid[16];
  };
} CommAddr;

typedef struct {
  EndpointLocType locType;
  __extension__ union {
    uint8_t raws[60];
    struct {
      uint32_t devPhyId;
      uint32_t superDevId;
      uint32_t serverIdx;
      uint32_t superPodIdx;
    } device;
    struct {
      uint32_t id;
    } host;
  };
} EndpointLoc;

typedef struct {
  CommProtocol protocol;
  CommAddr commAddr;
  EndpointLoc loc;
  __extension__ union {
    uint8_t raws[52];
  };
} EndpointDesc;

typedef struct {
  uint32_t version;
  uint32_t magicWord;
  uint32_t size;
  uint32_t reserved;
} CommAbiHeader;

#define COMM_LINK_MAGIC_WORD 0x0f0e0f0f
#define COMM_LINK_VERSION 1

typedef struct {
  CommAbiHeader header;
  EndpointDesc srcEndpointDesc;
  EndpointDesc dstEndpointDesc;
  union {
    uint8_t raws[128];
    __extension__ struct {
      CommProtocol linkProtocol;
      uint8_t hop;
    };
  } linkAttr;
} CommLink;

/// 0: within a server; 1: between servers, of a super-pod on A3; 2: between super-pods. Those that the communicator has.
HcclResult HcclRankGraphGetLayers(HcclComm comm, uint32_t **netLayers, uint32_t *netLayerNum);
/// Ranks that the caller's rank reaches in the layer, itself too.
HcclResult HcclRankGraphGetRanksByLayer(HcclComm comm, uint32_t netLayer, uint32_t **ranks, uint32_t *rankNum);
HcclResult HcclRankGraphGetRankSizeByLayer(HcclComm comm, uint32_t netLayer, uint32_t *rankNum);
HcclResult HcclRankGraphGetTopoTypeByLayer(HcclComm comm, uint32_t netLayer, CommTopo *topoType);
/// How many ranks each part of the layer has: each server, and so on.
HcclResult HcclRankGraphGetInstSizeListByLayer(HcclComm comm, uint32_t netLayer, uint32_t **instSizeList,
                                               uint32_t *listSize);
/// One link, in the lowest layer that has both ranks; none in the others. Its addresses are numbers of devices.
HcclResult HcclRankGraphGetLinks(HcclComm comm, uint32_t netLayer, uint32_t srcRank, uint32_t dstRank,
                                 CommLink **links, uint32_t *linkNum);

#ifdef __cplusplus
}
#endif

#endif
// NOLINTEND
