/* Sandbox double. */
#define CUDNN_VERSION_STRING "@V@"
#define CUDNN_MAJOR @CUDNN_MAJOR@
