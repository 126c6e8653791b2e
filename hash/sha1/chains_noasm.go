//go:build !amd64 || purego

package sha1

// amd tells which costs of passes hold here.
const amd = false

func assemblyChainKernels() []ChainKernel {
	if Scalar.check() == nil {
		return []ChainKernel{ChainsScalar}
	}
	return nil
}

func (p *pass) iterateAssembly(chains []Chain, n int) {
	panic("sha1: no code for chains in this build")
}
