/* Sandbox double. */
#define NCCL_VERSION "@V@"
